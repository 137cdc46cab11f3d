import { Client, type ClientBase, Pool, type QueryConfig } from 'pg'
import { InterruptedError, MirrorError, systemCode } from '../../errors.ts'
import { one, type Rule, type Runner, type Statement } from '../core/sql.ts'
import { createServerClock, type ServerClock } from './clock.ts'
import {
  type Ask,
  askBy,
  clientConfig,
  type PostgresAddress,
  type Query,
  runRule,
  serverAt,
} from './connection.ts'
import { POSTGRES, SERVER_TIME } from './driver.ts'
import { isAway, isConflict, isRefusedEachTime, translate } from './errors.ts'

/** What waiting for the server needs. */
export interface Patience {
  /** Milliseconds of a clock that is never set. */
  elapsed: () => number
  /** May end early when the signal comes; one that begins after it lasts its whole time. */
  sleep: (ms: number) => Promise<void>
  every: (ms: number, task: () => void) => () => void
  /** Once it is aborted, no wait is long. */
  signal: AbortSignal
  /** Reports what this process waits for. */
  report?: ((message: string) => void) | undefined
}

/** The PostgreSQL server. Once it has answered, every call but `once` and `readOnce` waits while it is away. All throw MirrorError. */
export interface Server {
  address: PostgresAddress
  clock: ServerClock
  /** Runs a rule that only reads, each of its statements by itself. */
  read<T>(rule: Rule<T>): Promise<T>
  /** Runs a rule in one transaction: all of it is written, or nothing. It runs again after a conflict, or an outage. */
  write<T>(begin: () => Rule<T>): Promise<T>
  /** The same for a task that reads something else as well. */
  transaction<T>(task: (ask: Ask) => Promise<T>): Promise<T>
  /** Runs a rule in a transaction, tried once: for what has to be written even after the signal, by a caller that tries again. */
  once<T>(rule: Rule<T>): Promise<T>
  /** Runs a task that only reads, on one snapshot, tried once. `meaning`: what an error of a statement means for it. */
  readOnce<T>(task: (reading: Reading) => Promise<T>, meaning?: (error: unknown) => unknown): Promise<T>
  /** Runs statements of a library, with pg's own results and errors. */
  plain(text: string, values?: readonly unknown[]): Promise<unknown>
  close(): Promise<void>
}

/** A transaction that can only read. */
export interface Reading {
  ask: Ask
  /** As pg sends it, and with its result. */
  query: Query
}

/** Few, since a server has few to give, and a page's statements take a millisecond; but a long one leaves room for the lease. */
const MOST_CONNECTIONS = 4

/** A statement is watched so often, and after so long the server is asked whether it still works on it. */
const WATCH_EVERY_MS = 5000
const LOOK_AFTER_MS = 15_000

/** After the signal: all waits together, and one statement. */
const WAITS_WHEN_STOPPING_MS = 2000
const STATEMENT_WHEN_STOPPING_MS = 3000

const SNAPSHOT = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'

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
    const fault = faultOf(await measureClock(server), address, purpose)
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
  at: number
}

const STANDING = `
  SELECT
    current_setting('search_path') AS path,
    current_setting('server_version_num') AS version,
    current_setting('transaction_read_only') AS only,
    ${SERVER_TIME} AS at
`

/** Compares the clock with the server's, and returns what the server is like. */
export async function measureClock({ clock, once }: Pick<Server, 'clock' | 'once'>): Promise<Standing> {
  const noteTime = clock.compare()
  const row = (await once(one<Standing>(STANDING))) as Standing
  noteTime(row.at)
  return row
}

/** Why the server cannot be used. */
function faultOf(
  { path, version, only }: Standing,
  { schema, setting }: PostgresAddress,
  purpose: 'writing' | 'reading',
): string | null {
  // A pooler that drops our settings would have the tables made in another schema.
  if (path !== schema)
    return `stands behind a pooler that drops the settings of a connection: put the address of the server itself into ${setting}`
  if (Number(version) < 150_000)
    return `is version ${Math.floor(Number(version) / 10_000)}: version 15 or later is needed`
  return purpose === 'writing' && only === 'on' ? `is read-only: name the primary server in ${setting}` : null
}

/** Runs the rules of the store, each that writes in a transaction of its own. */
export function runnerOn(
  server: Server,
  { now, signal }: { now: () => number; signal: AbortSignal },
): Runner {
  return {
    dialect: POSTGRES,
    now,
    isLocal: false,
    reading: server.read,
    writing: server.write,
    single: (begin) => server.read(begin()),
    async inBatches(batch) {
      while (!(await batch())) if (signal.aborted) return false
      return true
    },
  }
}

function createServer(address: PostgresAddress, patience: Patience): Server {
  const connections = createConnections(address, patience)
  const persist = createPersistence(address, patience)
  const translated = (error: unknown): never => {
    throw translate(address, error)
  }

  /** Runs `task` on a connection of its own. One on which it failed is closed: it may be in a transaction. */
  async function on<T>(task: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = await connections.open()
    let isWhole = false
    try {
      const result = await task(connection)
      isWhole = true
      return result
    } finally {
      connection.release(!isWhole)
    }
  }

  /**
   * A transaction that is repeated because its COMMIT got no answer could be written twice: a second walk, a second run. So the
   * server is asked first what became of it.
   */
  function transaction<T>(task: (ask: Ask) => Promise<T>): Promise<T> {
    let inDoubt: { id: string; result: T } | null = null
    return persist(() =>
      on(async ({ query, ask }) => {
        const before = inDoubt
        if (before && (await wasCommitted(query, before.id))) return before.result
        inDoubt = null
        // Of two statements at once pg returns a list of results.
        const begun: unknown = await query('BEGIN; SELECT pg_current_xact_id()::text AS id')
        const [, { rows }] = begun as [unknown, { rows: [{ id: string }] }]
        const result = await task(ask)
        inDoubt = { id: rows[0].id, result }
        await query('COMMIT')
        return result
      }),
    )
  }

  return {
    address,
    clock: createServerClock(patience.elapsed),
    read: (rule) => runRule((statement) => persist(() => on(({ ask }) => ask(statement))), rule),
    write: (begin) => transaction((ask) => runRule(ask, begin())),
    transaction,
    once: (rule) =>
      on(async ({ query, ask }) => {
        await query('BEGIN')
        const result = await runRule(ask, rule)
        await query('COMMIT')
        return result
      }).catch(translated),
    async readOnce(task, meaning = (error) => error) {
      const connection = await connections.open().catch(translated)
      // Only errors of statements are translated: others, such as that of a closed output, have the same codes as errors of the network.
      const query = (sent: string | QueryConfig) =>
        connection.query(sent).catch((error: unknown) => translated(meaning(error)))
      try {
        // Without it the server would notice a client that is gone only when it sends rows. Not every system can look.
        await connection.query("SET client_connection_check_interval = '1s'").catch(() => {})
        // A reader may take its time with the rows; and all of them are wanted, not the first ones soon.
        await query(
          `${SNAPSHOT}; SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL cursor_tuple_fraction = 1`,
        )
        const result = await task({ ask: (statement) => askBy(query, statement), query })
        // Nothing must be written, and EXPLAIN ANALYZE writes what it explains even in a transaction that can only read.
        await query('ROLLBACK')
        return result
      } finally {
        connection.release(true)
      }
    },
    plain: (text, values) =>
      persist(
        // Several statements at once can have no values.
        () => on(({ query }) => query(values ? { text, values: [...values] } : text)),
        (error) => error,
      ),
    close: connections.close,
  }
}

interface Connection extends Reading {
  release(isBroken: boolean): void
}

/** Connections that give up a statement whose server does not work on it any more, so that no process waits for it forever. */
function createConnections(address: PostgresAddress, { elapsed, every, signal }: Patience) {
  const config = clientConfig(address)
  const pool = new Pool({ ...config, max: MOST_CONNECTIONS, idleTimeoutMillis: 30_000 })
  // The next statement that needs the connection reports it.
  pool.on('error', () => {})
  // The pool does not listen to a connection in use: without this, a cut between two statements would end the process.
  pool.on('connect', (client) => client.on('error', () => {}))
  /** When the statement of a connection began. */
  const inFlight = new Map<ClientBase, number>()

  const stopWatching = every(WATCH_EVERY_MS, () => {
    for (const [client, since] of inFlight) {
      const ms = elapsed() - since
      if (signal.aborted && ms > STATEMENT_WHEN_STOPPING_MS) destroy(client)
      else if (ms > LOOK_AFTER_MS)
        void isIdle(client).then((isLost) => {
          if (isLost && inFlight.get(client) === since) destroy(client)
        })
    }
  })

  /** Whether the server is not at work on a connection, or is gone. It may be where it lets nobody else in. */
  async function isIdle(client: ClientBase): Promise<boolean> {
    const other = new Client(config)
    other.on('error', () => {})
    try {
      await other.connect()
      const sql = "SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND state = 'active'"
      // The number of the server's process, which pg's types do not know.
      const { processID } = client as unknown as { processID: number }
      return (await other.query(sql, [processID])).rows.length === 0
    } catch (error) {
      return systemCode(error) !== '53300'
    } finally {
      void other.end().catch(() => {})
    }
  }

  return {
    async open(): Promise<Connection> {
      const client = await pool.connect()
      const query: Query = async (sent) => {
        inFlight.set(client, elapsed())
        try {
          return await client.query(sent)
        } finally {
          inFlight.delete(client)
        }
      }
      return {
        query,
        ask: (statement: Statement) => askBy(query, statement),
        release: (isBroken) => client.release(isBroken),
      }
    },
    async close(): Promise<void> {
      await pool.end()
      stopWatching()
    },
  }
}

/** Ends a connection at once, whatever the server is doing. */
function destroy(client: ClientBase): void {
  const { connection } = client as unknown as { connection: { stream: { destroy(): void } } }
  connection.stream.destroy()
}

const FIRST_WAIT_MS = 250
const LONGEST_WAIT_MS = 5000
const REPORT_EVERY_MS = 60_000

const MOST_CONFLICTS = 20

/** Tries of a statement that the server ends each time, by its statement_timeout for example: about a minute. */
const MOST_REFUSED = 15

/** Returns a function that repeats a task until the server is there and nothing conflicts. */
function createPersistence(address: PostgresAddress, { elapsed, sleep, signal, report }: Patience) {
  /** Whether the server was away at the last try of any task. */
  let isAwayNow = false
  let stoppedAt = signal.aborted ? elapsed() : Number.POSITIVE_INFINITY
  signal.addEventListener('abort', () => {
    stoppedAt = elapsed()
  })
  /** When a wait was reported last, by any task: hundreds of lists may wait at once. Null: the server has answered since. */
  let toldAt: number | null = null

  function assertPatience(): void {
    if (elapsed() >= stoppedAt + WAITS_WHEN_STOPPING_MS)
      throw new InterruptedError('stopped while the PostgreSQL server was away; the next run continues')
  }

  function tell(error: unknown): void {
    if (toldAt !== null && elapsed() - toldAt < REPORT_EVERY_MS) return
    const known = translate(address, error)
    report?.(`waiting for the mirror: ${known instanceof Error ? known.message : ''}`)
    toldAt = elapsed()
  }

  /** `meaning`: what the caller gets for an error that no repetition helps. */
  return async <T>(
    task: () => Promise<T>,
    meaning = (error: unknown) => translate(address, error),
  ): Promise<T> => {
    let [conflicts, refused, waitMs] = [0, 0, 0]
    for (;;) {
      // Each further try would take its time, and there may be many of them.
      if (isAwayNow) assertPatience()
      try {
        const result = await task()
        isAwayNow = false
        if (waitMs > 0 && toldAt !== null) {
          report?.('the PostgreSQL server answers again')
          toldAt = null
        }
        return result
      } catch (error) {
        if (isConflict(error) && conflicts++ < MOST_CONFLICTS) continue
        // A list that fails is seen, and read again at its next time; one that waits forever is not.
        if (!isAway(error) || (isRefusedEachTime(error) && ++refused >= MOST_REFUSED)) throw meaning(error)
        isAwayNow = true
        assertPatience()
        tell(error)
      }
      waitMs = signal.aborted ? FIRST_WAIT_MS : Math.min(Math.max(waitMs * 2, FIRST_WAIT_MS), LONGEST_WAIT_MS)
      // The sleep of a process ends early at the signal.
      await sleep(waitMs).catch(() => {})
    }
  }
}

/** The server does not know a transaction of this number: another one has taken over, without it. */
const INVALID = '22023'

/** SQLSTATE of a transaction whose end is not known yet: it is asked for again, as if the server were away. */
const UNKNOWN = '08007'

/** Whether a transaction whose COMMIT got no answer was written. As long as that is not decided, fails as if the server were away. */
async function wasCommitted(query: Query, id: string): Promise<boolean> {
  try {
    const { rows } = await query({ text: 'SELECT pg_xact_status($1::text::xid8) AS status', values: [id] })
    const [row] = rows as { status: string | null }[]
    if (row?.status !== 'in progress') return row?.status === 'committed'
  } catch (error) {
    if (systemCode(error) === INVALID) return false
    throw error
  }
  throw Object.assign(new Error('the end of a transaction is not known yet'), { code: UNKNOWN })
}
