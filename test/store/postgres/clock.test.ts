import { describe, expect, it } from 'vitest'
import { createServerClock } from '../../../src/store/postgres/server/clock.ts'

const HOUR = 3_600_000

/** A server whose answers take 10 milliseconds each way, and is ahead of us by as much as is said. */
async function createScene() {
  const state = { elapsed: 1000, ahead: HOUR }
  const pass = (ms: number) => {
    state.elapsed += ms
  }
  const server = () => state.elapsed + state.ahead
  const sql = {
    async rows<T>() {
      pass(10)
      const at = server()
      pass(10)
      return [{ at }] as T[]
    },
  }
  return { state, pass, server, ...(await createServerClock(sql, () => state.elapsed)) }
}

describe('the clock of the server', () => {
  it('is what the server said, and the time since', async () => {
    const { clock, pass, server } = await createScene()
    pass(5000)
    expect(clock.now()).toBe(server())
  })

  it.each([
    ['goes on', 0, true],
    ['is a little off', 200, true],
    ['was set forth', 60_000, false],
    ['was set back', -60_000, false],
  ])('that %s is noticed with an answer, and followed', async (_name, set, isTrue) => {
    const { state, clock, pass, server } = await createScene()
    pass(5000)
    const heard = clock.compare()
    const heardLater = clock.compare()
    state.ahead += set
    pass(10)
    const at = server()
    pass(10)

    expect(heard(at)).toBe(isTrue)
    expect(Math.abs(clock.now() - server())).toBeLessThanOrEqual(isTrue ? 200 : 10)
    // An answer that was on its way at the same time corrects nothing twice.
    expect(heardLater(at)).toBe(true)
  })

  it.each([
    ['forward by an hour, and noticed with an answer', HOUR, 62_000, 'answer'],
    ['forward by seconds', 2000, 62_000, 'answer'],
    ['forward by a moment', 900, 0, 'answer'],
    ['forward, and noticed by measuring', HOUR, 62_000, 'measure'],
    ['back', -HOUR, 0, 'answer'],
    ['back, and noticed by measuring', -HOUR, 0, 'measure'],
    ['not at all', 0, 0, 'answer'],
  ])('that was set %s leaves nobody sure for a minute, if that is forward', async (_how, set, ms, by) => {
    const { state, clock, pass, server, measure } = await createScene()
    expect(clock.unsureFor()).toBe(0)
    const heard = clock.compare()
    state.ahead += set
    if (by === 'answer') heard(server())
    else await measure()

    expect(Math.abs(clock.unsureFor() - ms)).toBeLessThanOrEqual(40)
    pass(ms)
    expect(clock.unsureFor()).toBeLessThanOrEqual(20)
  })

  it('is measured again', async () => {
    const { state, clock, measure, server } = await createScene()
    state.ahead += 7
    await measure()
    expect(clock.now()).toBe(server())
  })
})
