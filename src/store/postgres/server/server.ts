import { InterruptedError, MirrorError } from '../../../errors.ts'
import type { Sql } from '../sql.ts'
import type { PostgresAddress } from './address.ts'
import { isAway, isConflict, translate } from './errors.ts'
import { type Cursor, createPool, type OwnConnection, type Pool } from './pool.ts'

/** What waiting for the server needs. */
export interface Patience {
  now: () => number
  sleep: (ms: number) => Promise<void>
  /** Once it is aborted, no wait is long. */
  signal: AbortSignal
  /** Reports what this process waits for. */
  report?: ((message: string) => void) | undefined
}

/** The PostgreSQL server. Once it has answered, it is waited for when it goes away. Throws MirrorError. */
export interface Server extends Pick<Sql, 'rows'> {
  address: PostgresAddress
  /** Runs `task` in one transaction: all of it is written, or nothing. It runs again after a conflict, or an outage. */
  transaction<T>(task: (sql: Sql) => Promise<T>): Promise<T>
  /** Runs `task` in a transaction that can only read, on one snapshot. */
  reading<T>(task: (sql: Sql & Cursor) => Promise<T>): Promise<T>
  connect(onLost: () => void): Promise<OwnConnection>
  /** Repeats a task on a connection of `connect` until the server is there. */
  patiently<T>(task: () => Promise<T>): Promise<T>
  /** Statements of a library, with pg's own results and errors. A server that is away is waited for, as everywhere. */
  plain(text: string, values?: readonly unknown[]): Promise<unknown>
  close(): Promise<void>
}

const FIRST_WAIT_MS = 250
const LONGEST_WAIT_MS = 5000
const REPORT_EVERY_MS = 60_000

/** All waits together, after the signal to stop. */
const STOPPING_MS = 2000

const MOST_CONFLICTS = 20

/** Connects. Throws MirrorError for a server that cannot be reached, refuses the role or is too old. */
export async function connectServer(address: PostgresAddress, patience: Patience): Promise<Server> {
  const pool = createPool(address)
  try {
    const [row] = await pool.rows<{ version: string }>(
      "SELECT current_setting('server_version_num') AS version",
      [],
    )
    if (Number(row?.version) < 150_000) throw tooOld(address, Number(row?.version))
  } catch (error) {
    await pool.close().catch(() => {})
    throw translate(address, error)
  }
  return createServer(address, pool, patience)
}

function tooOld({ host, port }: PostgresAddress, version: number): MirrorError {
  return new MirrorError(
    `the PostgreSQL server at ${host}:${port} is version ${Math.floor(version / 10_000)}: version 15 or later is needed`,
  )
}

function createServer(address: PostgresAddress, pool: Pool, patience: Patience): Server {
  const persist = createPersistence(address, patience)
  const inTransaction = <T>(begin: string, task: (sql: Sql & Cursor) => Promise<T>) =>
    persist(() =>
      pool.using(async (sql) => {
        await sql.exec(begin)
        const result = await task(sql)
        await sql.exec('COMMIT')
        return result
      }),
    )
  return {
    address,
    rows: (text, values = []) => persist(() => pool.rows(text, values)),
    transaction: (task) => inTransaction('BEGIN', task),
    reading: (task) => inTransaction('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY', task),
    connect: (onLost) => pool.connect(onLost),
    patiently: persist,
    async plain(text, values) {
      const { result, error } = await persist(() =>
        pool.plain(text, values).then(
          (got) => ({ result: got, error: null }),
          (failure: unknown) => {
            if (isAway(failure) || isConflict(failure)) throw failure
            return { result: null, error: failure }
          },
        ),
      )
      if (error !== null) throw error
      return result
    },
    close: () => pool.close(),
  }
}

/** Returns a function that repeats a task until the server is there and nothing conflicts. */
function createPersistence(address: PostgresAddress, { now, sleep, signal, report }: Patience) {
  let stoppedAt = signal.aborted ? now() : Number.POSITIVE_INFINITY
  /** Of all tasks together: hundreds of lists may wait at once. */
  let reportedAt: number | null = null
  signal.addEventListener('abort', () => {
    stoppedAt = now()
  })

  return async <T>(task: () => Promise<T>): Promise<T> => {
    let conflicts = 0
    let waited = false
    let waitMs = FIRST_WAIT_MS
    for (;;) {
      try {
        const result = await task()
        if (waited && reportedAt !== null) {
          report?.('the PostgreSQL server answers again')
          reportedAt = null
        }
        return result
      } catch (error) {
        if (isConflict(error) && conflicts++ < MOST_CONFLICTS) continue
        const known = translate(address, error)
        if (!isAway(error)) throw known
        if (now() >= stoppedAt + STOPPING_MS)
          throw new InterruptedError('stopped while the PostgreSQL server was away; the next run continues')
        if (reportedAt === null || now() - reportedAt >= REPORT_EVERY_MS) {
          report?.(`waiting for the mirror: ${known instanceof Error ? known.message : ''}`)
          reportedAt = now()
        }
      }
      waited = true
      // The sleep of a process ends early at the signal.
      await sleep(waitMs).catch(() => {})
      waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)
    }
  }
}
