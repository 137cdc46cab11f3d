import { describe, expect, it } from 'vitest'
import { MirrorError } from '../../../src/errors.ts'
import { holderText } from '../../../src/store/postgres/server/answers.ts'
import {
  type ClockOptions,
  createServerClock,
  type ServerClock,
} from '../../../src/store/postgres/server/clock.ts'
import { translate } from '../../../src/store/postgres/server/errors.ts'
import { connectServer } from '../../../src/store/postgres/server/server.ts'
import { newSchema, openDatabase } from '../../helpers/postgres.ts'
import { afterRealTime } from '../../helpers/real-time.ts'

const ADDRESS = newSchema({ url: 'postgres://mirror@127.0.0.1:6432/shop' })

const HOLDER = {
  pid: 4711,
  waits_for: 'relation',
  role: 'lea',
  program: 'psql',
  address: '10.0.0.7',
  since: new Date(0),
  word: 'alter',
  is_idle: false,
}

describe('the holder of a lock', () => {
  it.each([
    [
      {},
      'a lock on the PostgreSQL server that the role lea holds since 1970-01-01T00:00:00.000Z, by ALTER (psql, 10.0.0.7, process 4711)',
    ],
    [
      { is_idle: true, address: null },
      'a lock on the PostgreSQL server that the role lea holds since 1970-01-01T00:00:00.000Z, idle after ALTER (psql, process 4711)',
    ],
    // What another role does is shown to few.
    [
      { program: null, address: null, since: null, word: null, is_idle: null },
      'a lock on the PostgreSQL server that the role lea holds (process 4711)',
    ],
    [
      { waits_for: 'advisory', role: null, word: 'secret' },
      'an advisory lock on the PostgreSQL server that somebody holds since 1970-01-01T00:00:00.000Z (psql, 10.0.0.7, process 4711)',
    ],
  ])('of %j is named', (changed, text) => {
    expect(holderText({ ...HOLDER, ...changed })).toBe(`waiting for ${text}`)
  })
})

describe('an error of a connection pooler', () => {
  it.each([
    ['08P01', 'unsupported startup parameter: options'],
    ['42P05', 'prepared statement "x" already exists'],
    ['26000', 'prepared statement "x" does not exist'],
  ])('%s says what stands in the way', (code, message) => {
    const error = translate(ADDRESS, Object.assign(new Error(message), { code }))

    expect(error).toMatchObject({
      name: 'MirrorError',
      message: expect.stringMatching(
        /there is a connection pooler in front of .* the address of the server itself/,
      ) as string,
    })
  })

  it('is another one where the server itself breaks the protocol', () => {
    const error = translate(ADDRESS, Object.assign(new Error('invalid message format'), { code: '08P01' }))

    expect(error).toMatchObject({ message: expect.stringMatching(/cannot be reached \(08P01\)/) as string })
  })
})

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
async function createClockScene(options: ClockOptions = {}) {
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
  return { state, pass, serverNow, ...(await createServerClock(sql, () => state.elapsed, options)) }
}

const unsureFor = (clock: ServerClock) => Math.max(0, clock.sureAt() - clock.now())

describe('the clock of the server', () => {
  it.each([
    ['goes on', 0, true],
    ['is a little off', 200, true],
    ['was set forth', 60_000, false],
    ['was set back', -60_000, false],
  ])('that %s is noticed with an answer, and followed', async (_name, set, isTrue) => {
    const { state, clock, pass, serverNow } = await createClockScene()
    pass(5000)
    const heard = clock.compare()
    const heardLater = clock.compare()
    state.ahead += set
    pass(10)
    const at = serverNow()
    pass(10)

    expect(heard(at)).toBe(isTrue)
    expect(Math.abs(clock.now() - serverNow())).toBeLessThanOrEqual(isTrue ? 200 : 10)
    // An answer that was on its way at the same time corrects nothing twice.
    expect(heardLater(at)).toBe(true)
  })

  it('was not set where answers were handled late, and then in time again', async () => {
    const waits: number[] = []
    const { state, measure, serverNow, clock } = await createClockScene({ onForward: (ms) => waits.push(ms) })
    for (const handledAfter of [2100, 0, 30_000, 0]) {
      state.handledAfter = handledAfter
      await measure()
    }

    expect(waits).toEqual([])
    expect(clock.now()).toBe(serverNow())
  })

  it('that was set forward is told of once, and nobody is sure for as long as requests count', async () => {
    const waits: number[] = []
    const { state, pass, clock, measure, serverNow } = await createClockScene({
      windowMs: 600_000,
      onForward: (ms) => waits.push(ms),
    })
    const [heard, heardToo] = [clock.compare(), clock.compare()]
    state.ahead += HOUR
    heard(serverNow())
    heardToo(serverNow())
    await measure()

    expect(waits).toEqual([602_000])
    pass(600_000)
    expect(unsureFor(clock)).toBeGreaterThan(1000)
    pass(2000)
    expect(unsureFor(clock)).toBe(0)
  })
})
