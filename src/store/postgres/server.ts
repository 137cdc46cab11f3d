import { MirrorError, systemCode } from '../../errors.ts'
import { one, type Rule, type Runner } from '../core/sql.ts'
import { type PostgresAddress, serverAt } from './address.ts'
import { createServerClock, type ServerClock } from './clock.ts'
import { type Ask, askBy, type Connection, createConnections, type Query, runRule } from './connections.ts'
import { POSTGRES, SERVER_TIME } from './driver.ts'
import { BEHIND_POOLER, READ_ONLY, translate } from './errors.ts'
import { createPersistence, type Patience } from './waiting.ts'

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
  /** Runs a rule that only reads, tried once. */
  once<T>(rule: Rule<T>): Promise<T>
  /** Runs a task that only reads, on one snapshot, tried once. `meaning`: what an error of a statement means for it. */
  readOnce<T>(task: (ask: Ask, query: Query) => Promise<T>, meaning?: (error: unknown) => unknown): Promise<T>
  /** Runs statements of a library, with pg's own results. */
  plain(text: string, values?: readonly unknown[]): Promise<unknown>
  close(): Promise<void>
}

type Purpose = 'writing' | 'reading'

/**
 * Connects. Throws MirrorError for a server that cannot be reached, refuses the role or is too old, and, where the mirror is
 * to be written, for one that only reads: the program would wait forever for a standby that is named by mistake.
 */
export async function connectServer(
  address: PostgresAddress,
  patience: Patience,
  purpose: Purpose = 'writing',
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
  settings: string
  version: string
  /** `on`: a standby, or a role that may only read. */
  only: string
  at: number
}

const STANDING = `
  SELECT
    concat_ws(' ', current_setting('search_path'), current_setting('TimeZone'), current_setting('jit')) AS settings,
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

/** Why the server cannot be used; null: it can. */
export function faultOf(
  { settings, version, only }: Omit<Standing, 'at'>,
  { schema }: Pick<PostgresAddress, 'schema'>,
  purpose: Purpose,
): string | null {
  // Without ours the tables would be made in another schema, or times be read wrong.
  if (settings !== `${schema} UTC off`) return BEHIND_POOLER
  if (Number(version) < 150_000)
    return `is version ${Math.floor(Number(version) / 10_000)}: version 15 or later is needed`
  return purpose === 'writing' && only === 'on' ? READ_ONLY : null
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
    async inBatches(batch) {
      while (!(await batch())) if (signal.aborted) return false
      return true
    },
  }
}

/** A reader has one snapshot, may take its time with the rows, and wants all of them, not the first ones soon. */
const BEGIN_READING =
  'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL cursor_tuple_fraction = 1'

function createServer(address: PostgresAddress, patience: Patience): Server {
  const connections = createConnections(address, patience)
  const persist = createPersistence(address, patience)
  const translated = (error: unknown): never => {
    throw translate(address, error)
  }

  /** Runs `task` on a connection of its own, which is closed if that fails. */
  async function on<T>(
    task: (connection: Connection) => Promise<T>,
    opening: Promise<Connection> = connections.open(),
  ): Promise<T> {
    const connection = await opening
    let isBroken = true
    try {
      const result = await task(connection)
      isBroken = false
      return result
    } finally {
      connection.release(isBroken)
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
    once: (rule) => on(({ ask }) => runRule(ask, rule)).catch(translated),
    readOnce: (task, meaning = (error) => error) =>
      on(async (connection) => {
        // Only errors of statements are translated: others, such as that of a closed output, have the same codes as errors of the network.
        const query: Query = (sent) =>
          connection.query(sent).catch((error: unknown) => translated(meaning(error)))
        // Without it the server would notice a client that is gone only when it sends rows. Not every system can look.
        await connection.query("SET client_connection_check_interval = '1s'").catch(() => {})
        await query(BEGIN_READING)
        const result = await task(askBy(query), query)
        // Nothing must be written, and EXPLAIN ANALYZE writes what it explains even in a transaction that can only read.
        await query('ROLLBACK')
        return result
      }, connections.open().catch(translated)),
    plain: (text, values) =>
      // Several statements at once can have no values.
      persist(() => on(({ query }) => query(values ? { text, values: [...values] } : text))),
    close: connections.close,
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
