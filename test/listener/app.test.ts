import { describe, expect, it } from 'vitest'
import { cached, isLoopbackHost } from '../../src/listener/app.ts'
import { isLoopback } from '../../src/loopback.ts'

describe('the Host header of a request to a listener on loopback', () => {
  it.each([
    'localhost',
    'LocalHost:9464',
    'localhost.',
    '127.0.0.1',
    '[::1]:9464',
    '[::ffff:127.0.0.1]:9464',
  ])('may be %s', (host) => {
    expect(isLoopbackHost(host)).toBe(true)
  })

  it.each([
    '',
    'evil.example',
    'mirror.localhost:9464',
    '127.1',
    '127.0.0.1.evil.example',
    'evil.example@127.0.0.1',
    '192.168.0.1:9464',
    '[::2]',
    'localhost evil',
  ])('may not be %j', (host) => {
    expect(isLoopbackHost(host)).toBe(false)
  })
})

describe('an address', () => {
  it.each([
    ['127.0.0.1', true],
    ['::1', true],
    ['::ffff:127.0.0.1', true],
    ['0.0.0.0', false],
    ['192.168.127.1', false],
    ['localhost', true],
    ['127.evil.example', false],
    ['::ffff:8.8.8.8', false],
  ])('%s is reached from this machine alone: %s', (address, expected) => {
    expect(isLoopback(address)).toBe(expected)
  })
})

/** A clock that a computation moves by what it takes. */
function scene(takesMs: number) {
  const clock = { now: 1_000_000, computed: 0 }
  const compute = () => {
    clock.computed++
    clock.now += takesMs
    return clock.computed
  }
  return { clock, get: cached(compute, () => clock.now) }
}

describe('a cached answer', () => {
  it('is used for a second, by all who ask meanwhile', async () => {
    const { clock, get } = scene(0)

    const first = await Promise.all([get(), get()])
    clock.now += 999
    const later = await get()
    clock.now += 1
    const last = await get()

    expect([...first, later, last]).toEqual([1, 1, 1, 2])
  })

  it('that takes long is used twenty times as long', async () => {
    const { clock, get } = scene(300)

    await get()
    clock.now += 5999
    await get()
    const before = clock.computed
    clock.now += 1
    await get()

    expect([before, clock.computed]).toEqual([1, 2])
  })

  it('is computed again after the clock was set back', async () => {
    const { clock, get } = scene(0)
    await get()

    clock.now -= 3_600_000
    await get()

    expect(clock.computed).toBe(2)
  })

  it('may be an error, which is not computed again at once either', async () => {
    let computed = 0
    const get = cached(
      () => {
        computed++
        throw new Error('damaged')
      },
      () => 5,
    )

    await expect(get()).rejects.toThrow('damaged')
    await expect(get()).rejects.toThrow('damaged')

    expect(computed).toBe(1)
  })
})
