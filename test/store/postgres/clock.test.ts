import { describe, expect, it } from 'vitest'
import {
  type ClockOptions,
  createServerClock,
  type ServerClock,
} from '../../../src/store/postgres/server/clock.ts'

const HOUR = 3_600_000

/** A server whose answers take 10 milliseconds each way, and is ahead of us by as much as is said. */
async function createScene(options: ClockOptions = {}) {
  const state = { elapsed: 1000, ahead: HOUR, handledAfter: 0 }
  const pass = (ms: number) => {
    state.elapsed += ms
  }
  const server = () => state.elapsed + state.ahead
  const sql = {
    async rows<T>() {
      pass(10)
      const at = server()
      pass(10 + state.handledAfter)
      return [{ at }] as T[]
    },
  }
  return { state, pass, server, ...(await createServerClock(sql, () => state.elapsed, options)) }
}

const unsureFor = (clock: ServerClock) => Math.max(0, clock.sureAt() - clock.now())

describe('the clock of the server', () => {
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

  it('was not set where answers were handled late, and then in time again', async () => {
    const waits: number[] = []
    const { state, measure, server, clock } = await createScene({ onForward: (ms) => waits.push(ms) })
    for (const handledAfter of [2100, 0, 30_000, 0]) {
      state.handledAfter = handledAfter
      await measure()
    }

    expect(waits).toEqual([])
    expect(clock.now()).toBe(server())
  })

  it('that was set forward is told of once, and nobody is sure for as long as requests count', async () => {
    const waits: number[] = []
    const { state, pass, clock, measure, server } = await createScene({
      windowMs: 600_000,
      onForward: (ms) => waits.push(ms),
    })
    const [heard, heardToo] = [clock.compare(), clock.compare()]
    state.ahead += HOUR
    heard(server())
    heardToo(server())
    await measure()

    expect(waits).toEqual([602_000])
    pass(600_000)
    expect(unsureFor(clock)).toBeGreaterThan(1000)
    pass(2000)
    expect(unsureFor(clock)).toBe(0)
  })
})
