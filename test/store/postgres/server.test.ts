import { describe, expect, it } from 'vitest'
import { MirrorError } from '../../../src/errors.ts'
import { createServerClock } from '../../../src/store/postgres/server/clock.ts'
import { connectServer } from '../../../src/store/postgres/server/server.ts'
import { newSchema, openDatabase } from '../../helpers/postgres.ts'
import { afterRealTime } from '../../helpers/real-time.ts'

const server = await openDatabase()

describe.skipIf(server.missing !== null)('a statement that the server ends each time', () => {
  it('is tried again with growing waits, said, and given up after about a minute', async () => {
    const waits: number[] = []
    const reports: string[] = []
    const connected = await connectServer(newSchema(server), {
      now: () => 0,
      sleep: async (ms) => {
        waits.push(ms)
        await Promise.resolve()
      },
      after: afterRealTime,
      signal: new AbortController().signal,
      report: (message) => reports.push(message),
    })
    const slow = connected.transaction(async (sql) => {
      await sql.exec('SET LOCAL statement_timeout = 1')
      await sql.rows('SELECT pg_sleep(60)')
    })

    await expect(slow).rejects.toThrow(MirrorError)
    await expect(slow).rejects.toThrow(/ended a statement by its statement_timeout: raise it/)
    expect(waits.slice(0, 3)).toEqual([250, 500, 1000])
    expect(waits.reduce((sum, ms) => sum + ms, 0)).toBeGreaterThan(40_000)
    expect(waits.reduce((sum, ms) => sum + ms, 0)).toBeLessThan(80_000)
    expect(reports).toEqual([expect.stringMatching(/^waiting for the mirror: .*statement_timeout/)])
    // The connection is there for the next one.
    expect(await connected.rows('SELECT 1 AS one')).toEqual([{ one: 1 }])
    await connected.close()
  })
})

const HOUR = 3_600_000

/** A server whose answers take 10 milliseconds each way, and is ahead of us by as much as is said. */
async function createClockScene() {
  const state = { elapsed: 1000, ahead: HOUR, handledAfter: 0 }
  const pass = (ms: number) => {
    state.elapsed += ms
  }
  const serverNow = () => state.elapsed + state.ahead
  const sql = {
    async rows<T>() {
      pass(10)
      const at = serverNow()
      pass(10 + state.handledAfter)
      return [{ at }] as T[]
    },
  }
  return { state, pass, serverNow, ...(await createServerClock(sql, () => state.elapsed)) }
}

describe('the clock of the server', () => {
  it.each([
    ['goes on', 0, 0],
    ['is a little off', 200, 200],
    ['was set forth', 60_000, 10],
    ['was set back', -60_000, 10],
  ])('that %s is followed with an answer', async (_name, set, off) => {
    const { state, clock, pass, serverNow } = await createClockScene()
    pass(5000)
    const heard = clock.compare()
    const heardLater = clock.compare()
    state.ahead += set
    pass(10)
    const at = serverNow()
    pass(10)

    heard(at)
    expect(Math.abs(clock.now() - serverNow())).toBeLessThanOrEqual(off)
    // An answer that was on its way at the same time corrects nothing twice.
    heardLater(at)
    expect(Math.abs(clock.now() - serverNow())).toBeLessThanOrEqual(off)
  })

  it('is measured by the quickest of its answers', async () => {
    const { state, measure, serverNow, clock } = await createClockScene()
    for (const handledAfter of [2100, 0, 30_000, 0]) {
      state.handledAfter = handledAfter
      await measure()
    }

    expect(clock.now()).toBe(serverNow())
  })
})
