import { InterruptedError, MirrorError } from '../../../errors.ts'
import { isAway, isConflict, isRefusedEachTime, serverAt, translate } from './errors.ts'
import { type Cursor, createPool, type Pool, type PostgresAddress, type Sql } from './pool.ts'

/** What waiting for the server needs. */
export interface Patience {
  now: () => number
  /** May end early when the signal comes; one that begins after it lasts its whole time. */
  sleep: (ms: number) => Promise<void>
  /** Runs a task after `ms` milliseconds. Returns a function that prevents it. */
  after: (ms: number, task: () => void) => () => void
  /** Once it is aborted, no wait is long. */
  signal: AbortSignal
  /** Reports what this process waits for. */
  report?: ((message: string) => void) | undefined
}

/** The PostgreSQL server. Once it has answered, every call waits while it is away. Throws MirrorError. */
export interface Server extends Pick<Sql, 'rows' | 'count'> {
  address: PostgresAddress
  /** Runs `task` in one transaction: all of it is written, or nothing. It runs again after a conflict, or an outage. */
  transaction<T>(task: (sql: Sql) => Promise<T>): Promise<T>
  /** The same, tried once: for what has to be written even after the signal, by a caller that tries again. */
  attempt<T>(task: (sql: Sql) => Promise<T>): Promise<T>
  /** Runs `task` in a transaction that can only read, on one snapshot. */
  reading<T>(task: (sql: Sql & Cursor) => Promise<T>): Promise<T>
  /** The same, but never repeated, since some of what was read may be written already. */
  readingOnce<T>(task: (sql: Sql & Cursor) => Promise<T>, options: ReadingOnce): Promise<T>
  /** Runs statements of a library, with pg's own results and errors. Waits while the server is away, as all calls do. */
  plain(text: string, values?: readonly unknown[]): Promise<unknown>
  close(): Promise<void>
}

export interface ReadingOnce {
  /** Ends the statement with its connection. */
  stop: AbortSignal
  /** What an error of a statement means for this task; the same error where it means nothing special. */
  meaning: (error: unknown) => unknown
}

const FIRST_WAIT_MS = 250
const LONGEST_WAIT_MS = 5000
const REPORT_EVERY_MS = 60_000

/** All waits together, after the signal to stop. */
const WAITS_WHEN_STOPPING_MS = 2000

const MOST_CONFLICTS = 20

/** Tries of a statement that the server ends each time, by its statement_timeout for example: about a minute. */
const MOST_REFUSED = 15

/**
 * Connects. Throws MirrorError for a server that cannot be reached, refuses the role or is too old, and, where the mirror is
 * to be written, for one that only reads: the program would wait forever for a standby that is named by mistake.
 */
export async function connectServer(
  address: PostgresAddress,
  patience: Patience,
  purpose: 'writing' | 'reading' = 'writing',
): Promise<Server> {
  const server = createServer(address, patience)
  try {
    const [row] = await server.attempt((sql) => sql.rows<Standing>(STANDING))
    const fault = row && faultOf(row, address, purpose)
    if (fault) throw new MirrorError(`${serverAt(address)} ${fault}`)
    return server
  } catch (error) {
    await server.close().catch(() => {})
    throw error
  }
}

interface Standing {
  path: string
  version: string
  /** `on`: a standby, or a role that may only read. */
  only: string
}

const STANDING = `
  SELECT
    current_setting('search_path') AS path,
    current_setting('server_version_num') AS version,
    current_setting('transaction_read_only') AS only
`

/** Why the server cannot be used. */
function faultOf(
  { path, version, only }: Standing,
  { schema }: PostgresAddress,
  purpose: 'writing' | 'reading',
): string | null {
  // A pooler that drops our settings would have the tables made in another schema.
  if (path !== schema)
    return 'stands behind a pooler that drops the settings of a connection: put the address of the server itself into "database"'
  if (Number(version) < 150_000)
    return `is version ${Math.floor(Number(version) / 10_000)}: version 15 or later is needed`
  return purpose === 'writing' && only === 'on' ? 'is read-only: name the primary server as "database"' : null
}

function createServer(address: PostgresAddress, patience: Patience): Server {
  const pool = createPool(address, patience)
  const persist = createPersistence(address, patience)
  const single = { isSingle: true }
  const inTransaction = <T>(begin: string, task: (sql: Sql & Cursor) => Promise<T>) =>
    pool.on(async (sql) => {
      await sql.exec(begin)
      const result = await task(sql)
      await sql.exec('COMMIT')
      return result
    })
  /**
   * A transaction that is repeated because its COMMIT got no answer could be written twice: a second walk, a second run. So the
   * server is asked first what became of it.
   */
  function transaction<T>(task: (sql: Sql) => Promise<T>): Promise<T> {
    let inDoubt: { id: string; result: T } | null = null
    return persist(async () => {
      const before = inDoubt
      if (before && (await pool.on((sql) => wasCommitted(sql, before.id), single))) return before.result
      inDoubt = null
      return pool.on(async (sql) => {
        const id = await sql.begin()
        const result = await task(sql)
        inDoubt = { id, result }
        await sql.exec('COMMIT')
        return result
      })
    })
  }

  return {
    address,
    rows: <T>(text: string, values?: readonly unknown[]) =>
      persist(() => pool.on((sql) => sql.rows<T>(text, values), single)),
    count: (text, values) => persist(() => pool.on((sql) => sql.count(text, values), single)),
    transaction,
    attempt: (task) =>
      inTransaction('BEGIN', task).catch((error: unknown) => {
        throw translate(address, error)
      }),
    reading: (task) => persist(() => inTransaction('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY', task)),
    readingOnce: (task, options) => readOnce(address, pool, task, options),
    plain: (text, values) =>
      persist(
        () => pool.on((sql) => sql.plain(text, values)),
        (error) => error,
      ),
    close: () => pool.close(),
  }
}

/** Returns a function that repeats a task until the server is there and nothing conflicts. */
function createPersistence(address: PostgresAddress, { now, sleep, signal, report }: Patience) {
  /** Whether the server was away at the last try of any task. */
  let isAwayNow = false
  let stoppedAt = signal.aborted ? now() : Number.POSITIVE_INFINITY
  /** When each reason was reported last, by any task: hundreds of lists may wait at once, and some may succeed meanwhile. */
  const told = new Map<string, number>()
  let isTold = false
  signal.addEventListener('abort', () => {
    stoppedAt = now()
  })

  function tell(reason: string): void {
    if (now() - (told.get(reason) ?? Number.NEGATIVE_INFINITY) < REPORT_EVERY_MS) return
    report?.(reason)
    told.set(reason, now())
    isTold = true
  }

  /** `meaning`: what the caller gets for an error that no repetition helps. */
  return async <T>(
    task: () => Promise<T>,
    meaning = (error: unknown) => translate(address, error),
  ): Promise<T> => {
    let conflicts = 0
    let refused = 0
    let waited = false
    let waitMs = FIRST_WAIT_MS
    for (;;) {
      // Each further try would take its time, and there may be many of them.
      if (isAwayNow && now() >= stoppedAt + WAITS_WHEN_STOPPING_MS) throw stoppedWhileAway()
      try {
        const result = await task()
        isAwayNow = false
        if (waited && isTold) {
          report?.('the PostgreSQL server answers again')
          isTold = false
        }
        return result
      } catch (error) {
        if (isConflict(error) && conflicts++ < MOST_CONFLICTS) continue
        // A list that fails is seen, and read again at its next time; one that waits forever is not.
        if (!isAway(error) || (isRefusedEachTime(error) && ++refused >= MOST_REFUSED)) throw meaning(error)
        isAwayNow = true
        if (now() >= stoppedAt + WAITS_WHEN_STOPPING_MS) throw stoppedWhileAway()
        const known = translate(address, error)
        tell(`waiting for the mirror: ${known instanceof Error ? known.message : ''}`)
      }
      waited = true
      // The sleep of a process ends early at the signal.
      await sleep(signal.aborted ? FIRST_WAIT_MS : waitMs).catch(() => {})
      waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)
    }
  }
}

function stoppedWhileAway(): InterruptedError {
  return new InterruptedError('stopped while the PostgreSQL server was away; the next run continues')
}

/** The server does not know a transaction of this number: another one has taken over, without it. */
const INVALID = '22023'

/** SQLSTATE of a transaction whose end is not known yet: it is asked for again, as if the server were away. */
const UNKNOWN = '08007'

/** Whether a transaction whose COMMIT got no answer was written. As long as that is not decided, fails as if the server were away. */
async function wasCommitted(sql: Pick<Sql, 'rows'>, id: string): Promise<boolean> {
  try {
    const [row] = await sql.rows<{ status: string | null }>(
      'SELECT pg_xact_status($1::text::xid8) AS status',
      [id],
    )
    if (row?.status !== 'in progress') return row?.status === 'committed'
  } catch (error) {
    if ((error as { code?: unknown }).code === INVALID) return false
    throw error
  }
  throw Object.assign(new Error('the end of a transaction is not known yet'), { code: UNKNOWN })
}

/** Runs `task` in a transaction that can only read, on one snapshot, and never again. Throws MirrorError, or what `meaning` says. */
async function readOnce<T>(
  address: PostgresAddress,
  pool: Pool,
  task: (sql: Sql & Cursor) => Promise<T>,
  { stop, meaning }: ReadingOnce,
): Promise<T> {
  // Only errors of statements are translated: others, such as that of a closed output, have the same codes as errors of the network.
  const told = async <R>(answer: Promise<R>): Promise<R> => {
    try {
      return await answer
    } catch (error) {
      throw translate(address, meaning(error))
    }
  }
  const run = async (sql: Sql & Cursor): Promise<T> => {
    // Without it the server would notice a client that is gone only when it sends rows. Not every system can look.
    await sql.exec("SET client_connection_check_interval = '1s'").catch(() => {})
    await told(sql.exec(BEGIN))
    const result = await task({
      rows: (text, values) => told(sql.rows(text, values)),
      count: (text, values) => told(sql.count(text, values)),
      exec: (text) => told(sql.exec(text)),
      arrays: (text, values) => told(sql.arrays(text, values)),
    })
    // Nothing must be written, and EXPLAIN ANALYZE writes what it explains even in a transaction that can only read.
    await told(sql.exec('ROLLBACK'))
    return result
  }
  let isConnected = false
  try {
    return await pool.on(
      (sql) => {
        isConnected = true
        return run(sql)
      },
      { stop },
    )
  } catch (error) {
    throw isConnected ? error : translate(address, error)
  }
}

/** A reader may take its time with the rows, so the transaction may be idle; and all rows are wanted, not the first ones soon. */
const BEGIN = `
  BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
  SET LOCAL idle_in_transaction_session_timeout = 0;
  SET LOCAL cursor_tuple_fraction = 1
`
