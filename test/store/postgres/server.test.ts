import { describe, expect, it } from 'vitest'
import { MirrorError } from '../../../src/errors.ts'
import { exec, one } from '../../../src/store/core/sql.ts'
import { createServerClock, serverBudgets } from '../../../src/store/postgres/clock.ts'
import { translate } from '../../../src/store/postgres/errors.ts'
import { connectServer, faultOf } from '../../../src/store/postgres/server.ts'
import { newSchema, openDatabase, openReader } from '../../helpers/postgres.ts'
import { startProxy } from '../../helpers/proxy.ts'
import { shortPatience } from '../../helpers/real-time.ts'

const server = await openDatabase()

describe.skipIf(server.missing !== null)('a statement that the server ends each time', () => {
  it('is tried again with growing waits, said, and given up after about a minute', async () => {
    const waits: number[] = []
    const reports: string[] = []
    const connected = await connectServer(newSchema(server), {
      ...shortPatience(),
      elapsed: () => 0,
      sleep: async (ms) => void waits.push(ms),
      report: (message) => reports.push(message),
    })
    const slow = connected.write(function* () {
      yield* exec(['SET LOCAL statement_timeout = 1'])
      yield* one('SELECT pg_sleep(60)')
    })

    await expect(slow).rejects.toThrow(MirrorError)
    await expect(slow).rejects.toThrow(
      /ended a statement by its statement_timeout: raise it .*SQLSTATE 57014/,
    )
    expect(waits.slice(0, 3)).toEqual([250, 500, 1000])
    expect(waits.reduce((sum, ms) => sum + ms, 0)).toBeGreaterThan(40_000)
    expect(reports).toEqual([expect.stringMatching(/^waiting for the mirror: .*statement_timeout/)])
    // The connection is there for the next one.
    expect(await connected.read(one('SELECT 1 AS one'))).toEqual({ one: 1 })
    await connected.close()
  })
})

describe.skipIf(server.missing !== null)('a statement that gets no answer', () => {
  it('is not waited for once the process is to stop, where there is no connection for it either', async () => {
    const address = newSchema(server)
    const proxy = await startProxy(address.port)
    const stop = new AbortController()
    const ticks: (() => void)[] = []
    let ms = 0
    const connected = await connectServer(
      { ...address, port: proxy.port },
      {
        ...shortPatience(stop.signal),
        elapsed: () => ms,
        every(_often, task) {
          ticks.push(task)
          return () => {}
        },
      },
    )
    const pass = () => {
      ms += 4000
      for (const tick of ticks) tick()
    }
    // A second statement needs a connection of its own.
    connected.once(one('SELECT pg_sleep(0.2)')).catch(() => {})
    proxy.freeze()
    const statement = connected.once(one('SELECT 1'))
    stop.abort()

    pass()
    await expect(statement).rejects.toThrow(/cannot be reached .*the process is to stop/)
    const closed = connected.close()
    pass()
    await closed
  })

  it('is sent again once the server does not work on it any more, and no sooner', async () => {
    const address = newSchema(server)
    const proxy = await startProxy(address.port)
    // As a pooler does, which tells each connection a number of its own.
    proxy.alter(withOtherNumber)
    const rows = await openReader(address)
    let [ms, watch] = [0, () => {}]
    const connected = await connectServer(
      { ...address, port: proxy.port },
      {
        ...shortPatience(),
        elapsed: () => ms,
        every(_often, task) {
          watch = task
          return () => {}
        },
      },
    )
    await rows('CREATE SEQUENCE public.tries')
    /** Which try at a statement of half a second is answered, after it was watched for long. `whileItWorks` happens before. */
    async function tryAnswered(whileItWorks: () => void): Promise<number> {
      const answer = { tries: 0 }
      const sql = "SELECT nextval('public.tries')::int AS tries, pg_sleep(0.5)"
      void connected.read(one<typeof answer>(sql)).then((row) => Object.assign(answer, row))
      const sleeping =
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'"
      await expect.poll(() => rows(sleeping)).toHaveLength(1)
      whileItWorks()
      ms += 20_000
      await expect
        .poll(
          () => {
            watch()
            return answer.tries
          },
          { timeout: 20_000 },
        )
        .not.toBe(0)
      return answer.tries
    }

    expect(await tryAnswered(() => {})).toBe(1)
    const loseTheAnswer = () => {
      proxy.freeze()
      proxy.thaw()
    }
    expect(await tryAnswered(loseTheAnswer)).toBe(3)
    await connected.close()
  })
})

/** What a server says, with 1 for the number of its process, which stands behind K and a length. */
function withOtherNumber(bytes: Buffer): Buffer {
  const at = bytes.indexOf(Buffer.from([0x4b, 0, 0, 0, 12]))
  if (at >= 0) bytes.writeInt32BE(1, at + 5)
  return bytes
}

const SOMEWHERE = newSchema({ url: 'postgres://me@there/db' })

it.each([
  ['all of them', `${SOMEWHERE.schema} UTC off`, null],
  ['another schema', 'public UTC off', /^stands behind a pooler/],
  ['another zone', `${SOMEWHERE.schema} Asia/Kolkata off`, /^stands behind a pooler that refuses or drops/],
])('a connection is used only with the settings that it asked for: %s', (_which, settings, fault) => {
  expect(faultOf({ settings, version: '180001', only: 'off' }, SOMEWHERE, 'writing')).toEqual(
    fault && expect.stringMatching(fault),
  )
})

it.each([
  // What the pool says where all its connections wait for answers.
  [
    '',
    'timeout exceeded when trying to connect',
    /^the PostgreSQL server at there:5432 answers no .* locked/,
  ],
  ['0A000', 'RDS Proxy currently doesn’t support command-line options', /stands behind a pooler/],
  [
    '08P01',
    'unsupported startup parameter: options',
    /behind a pooler .* name the server itself in the address/,
  ],
])('%s %s is told by its cause', (code, message, told) => {
  const error = Object.assign(new Error(message), code && { code })

  expect(translate(SOMEWHERE, error)).toHaveProperty('message', expect.stringMatching(told))
})

describe('the clock of the server', () => {
  it.each([
    ['goes on', 0, 0],
    ['is a little off', 200, 200],
    ['was set forth', 60_000, 10],
    ['was set back', -60_000, 10],
  ])('that %s is followed with an answer', (_name, set, off) => {
    let [elapsed, ahead] = [1000, 3_600_000]
    const clock = createServerClock(() => elapsed)
    clock.compare()(elapsed + ahead)
    elapsed += 5000
    const heard = clock.compare()
    const heardLater = clock.compare()
    ahead += set
    elapsed += 10
    const at = elapsed + ahead
    elapsed += 10

    // An answer that was on its way at the same time corrects nothing twice.
    for (const hear of [heard, heardLater]) {
      hear(at)
      expect(Math.abs(clock.now() - elapsed - ahead)).toBeLessThanOrEqual(off)
    }
  })
})

it('a permit that a lock on the server kept waiting is written again, so that it counts from when its request leaves', async () => {
  let [elapsed, version] = [0, 0]
  const tookMs = [5000, 251, 250, 0]
  const read = async () => {
    elapsed += tookMs.shift() ?? 0
    return { version: ++version, at: elapsed } as never
  }
  const budgets = serverBudgets({ read, clock: createServerClock(() => elapsed) })
  const permits: number[] = []

  await budgets.compareAndSet('all', '0', () => {
    permits.push(elapsed)
    return { closedUntil: 0, known: null, waitingFor: null, waitingUntil: 0 }
  })

  expect(permits).toEqual([0, 5000, 5251])
})
