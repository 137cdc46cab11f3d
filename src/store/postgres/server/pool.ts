import { createHash } from 'node:crypto'
import { Client, type ClientBase, Pool as ClientPool, DatabaseError, types } from 'pg'
import { createAnswers, destroy } from './answers.ts'
import { isAway } from './errors.ts'

/** Where the mirror is, as the configuration says. */
export interface PostgresAddress {
  host: string
  port: number
  user: string
  database: string
  /** Letters, digits and `_`. */
  schema: string
  /** A certificate's authority, as a file's text; `system`: those of the system; null: no TLS. */
  tls: { authority: string | null } | null
  /** A function, so that no log and no error can print it. Undefined: none. */
  password: () => string | undefined
}

/** Where a mirror is, for messages. */
export function placeOf({ schema, database }: Pick<PostgresAddress, 'schema' | 'database'>): string {
  return `the schema ${schema} of the database ${database}`
}

/** Statements on the server, inside a transaction or each on its own. */
export interface Sql {
  /** The rows of one statement, prepared once a connection. Throws MirrorError, or OtherTablesError. */
  rows<T>(text: string, values?: readonly unknown[]): Promise<T[]>
  /** The same, of a statement without rows. Returns how many it has changed. */
  count(text: string, values?: readonly unknown[]): Promise<number>
  /** Runs statements without parameters. */
  exec(text: string): Promise<void>
}

/** Rows in the server's own types, for what people ask. */
export interface Cursor {
  /** Rows as arrays; whole numbers are bigint, times are texts as `timeOf` writes them. */
  arrays(text: string, values?: readonly unknown[]): Promise<Arrays>
}

/** `types`: of the columns, in the words of a mirror in a file; empty for `numeric`, which its values show. */
export interface Arrays {
  columns: string[]
  types: string[]
  rows: unknown[][]
}

/** All that is asked on a connection of the pool. */
interface Session extends Sql, Cursor {
  /** Begins a transaction that may write, and returns its number. */
  begin(): Promise<string>
  /** Statements of somebody else, whose results are as pg gives them; several of them if there are no values. */
  plain(text: string, values?: readonly unknown[]): Promise<unknown>
}

/** Few, since a server has few to give, and a page's statements take a millisecond; but a long one leaves room for the lease. */
const MOST_CONNECTIONS = 4

/** Milliseconds. */
const CONNECT_MS = 10_000

export type Pool = ReturnType<typeof createPool>

/** Connections of one process to the server. Errors are pg's own. `signal`: once it is aborted, no answer is waited for long. */
export function createPool(
  address: PostgresAddress,
  options: Omit<Parameters<typeof createAnswers>[0], 'newClient'>,
) {
  const answers = createAnswers({ ...options, newClient: () => new Client(config) })
  const config = { ...clientConfig(address), stream: answers.socket }
  const pool = new ClientPool({ ...config, max: MOST_CONNECTIONS, idleTimeoutMillis: 30_000 })
  // The next statement that needs the connection reports it.
  pool.on('error', () => {})
  // The pool does not listen to a connection in use: without this, a cut between two statements would end the process.
  pool.on('connect', (client) => client.on('error', () => {}))

  function sessionOf(client: ClientBase): Session {
    const prepared = (text: string, values: readonly unknown[] = []) =>
      answers.of(client, askPrepared(client, text, values))
    const plain = (text: string, values?: readonly unknown[]): Promise<unknown> =>
      answers.of(client, values ? client.query(text, [...values]) : client.query(text))
    return {
      rows: async <T>(text: string, values?: readonly unknown[]) =>
        (await prepared(text, values)).rows as T[],
      count: async (text, values) => (await prepared(text, values)).rowCount ?? 0,
      arrays: (text, values = []) => answers.of(client, askArrays(client, text, values)),
      exec: async (text) => void (await plain(text)),
      plain,
      async begin() {
        // Of two statements at once pg returns a list of results.
        const results = await plain('BEGIN; SELECT pg_current_xact_id()::text AS id')
        const [, begun] = results as { rows: { id: string }[] }[]
        return begun?.rows[0]?.id ?? ''
      },
    }
  }

  return {
    /**
     * Runs a task on one connection of the pool, which is cut on `stop`. One on which it failed is closed: of several statements one may
     * have left a transaction open. After a single one that was refused the connection is as it was; but a time-out of the role, once
     * raised, holds for new ones.
     */
    async on<T>(
      task: (session: Session) => Promise<T>,
      { stop, isSingle = false }: { stop?: AbortSignal; isSingle?: boolean } = {},
    ): Promise<T> {
      const client = await pool.connect()
      let isBroken = true
      const cut = () => destroy(client)
      stop?.addEventListener('abort', cut)
      if (stop?.aborted) cut()
      try {
        const result = await task(sessionOf(client))
        isBroken = false
        return result
      } catch (error) {
        isBroken = !(isSingle && error instanceof DatabaseError) || isAway(error)
        throw error
      } finally {
        stop?.removeEventListener('abort', cut)
        client.release(isBroken)
      }
    },
    close: () => {
      answers.close()
      return pool.end()
    },
  }
}

function clientConfig({ host, port, user, database, schema, tls, password }: PostgresAddress) {
  const settings = {
    search_path: schema,
    TimeZone: 'UTC',
    DateStyle: 'ISO',
    extra_float_digits: '1',
    jit: 'off',
    // A worker that is halted in the middle of a transaction keeps no locks, and its idle connections stay.
    idle_in_transaction_session_timeout: '20000',
    idle_session_timeout: '0',
    // The server learns within 10 seconds that a machine is gone, and drops its locks: two questions without an answer end the
    // connection. The system of a worker answers, however slow the worker or the server is.
    tcp_keepalives_idle: '4',
    tcp_keepalives_interval: '3',
    tcp_keepalives_count: '2',
    tcp_user_timeout: '9500',
  }
  return {
    host,
    port,
    user,
    database,
    password: password(),
    ssl: tls ? tlsOptions(host, tls.authority) : false,
    application_name: 'admin-mirror',
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 5000,
    options: Object.entries(settings)
      .map(([name, value]) => `-c ${name}=${value}`)
      .join(' '),
  }
}

/** With `host`: pg passes on no IP address, and then any certificate for `localhost` would be accepted. */
function tlsOptions(host: string, authority: string | null) {
  return { rejectUnauthorized: true, host, ...(authority === null ? {} : { ca: authority }) }
}

/** Names of prepared statements, by their text. */
const names = new Map<string, string>()

function statementName(text: string): string {
  const known = names.get(text)
  if (known !== undefined) return known
  const name = createHash('sha256').update(text).digest('base64url')
  names.set(text, name)
  return name
}

function askPrepared(client: ClientBase, text: string, values: readonly unknown[]) {
  return client.query({ name: statementName(text), text, values: [...values], types: { getTypeParser } })
}

/** Numbers of types. */
const [BOOL, INT8, INT2, INT4, FLOAT4, FLOAT8, TIMESTAMPTZ, NUMERIC] = [16, 20, 21, 23, 700, 701, 1184, 1700]

/** Our own counts and ids are far below 2^53; times are epoch milliseconds. */
const getTypeParser = ((type: number, format?: 'text' | 'binary') => {
  if (type === INT8) return Number
  if (type === TIMESTAMPTZ) return msOf
  return format === 'binary' ? types.getTypeParser(type, 'binary') : types.getTypeParser(type, 'text')
}) as typeof types.getTypeParser

async function askArrays(client: ClientBase, text: string, values: readonly unknown[]): Promise<Arrays> {
  const config = {
    text,
    values: [...values],
    // One statement alone: in the simple protocol a second one could end the transaction that only reads.
    queryMode: 'extended',
    rowMode: 'array' as const,
    types: { getTypeParser: getOutsideParser },
  }
  const { fields, rows } = await client.query<unknown[]>(config)
  return {
    columns: fields.map(({ name }) => name),
    types: fields.map(({ dataTypeID }) => outsideType(dataTypeID)),
    rows,
  }
}

// Values of any type, as what people ask for shows them: as a mirror in a file would.

const [LEAST, MOST] = [-(2n ** 63n), 2n ** 63n - 1n]

const getOutsideParser = ((type: number) => {
  if (type === INT8 || type === INT4 || type === INT2) return BigInt
  if (type === FLOAT4 || type === FLOAT8) return floatOf
  if (type === NUMERIC) return numericOf
  if (type === BOOL) return (value: string) => (value === 't' ? 1n : 0n)
  if (type === TIMESTAMPTZ) return isoOf
  return String
}) as typeof types.getTypeParser

/** The type of these values in a mirror in a file; empty where each value shows it. */
function outsideType(type: number): string {
  if (type === INT8 || type === INT4 || type === INT2 || type === BOOL) return 'INTEGER'
  if (type === FLOAT4 || type === FLOAT8) return 'REAL'
  return type === NUMERIC ? '' : 'TEXT'
}

/** No format of ours has a number for NaN. */
function floatOf(text: string): number | string {
  return text === 'NaN' ? text : Number(text)
}

/** What `sum` and `avg` return, too. A whole number beyond 64 bits, and one beyond a double's range, stays text. */
function numericOf(text: string): bigint | number | string {
  const [whole = '', fraction = ''] = text.split('.')
  if (/^-?\d+$/.test(whole) && /^0*$/.test(fraction)) {
    const value = BigInt(whole)
    return value >= LEAST && value <= MOST ? value : whole
  }
  const value = Number(text)
  return Number.isFinite(value) ? value : text
}

/** `infinity` and years before 1 stay as PostgreSQL writes them. */
function isoOf(text: string): string {
  const at = /^\d{4}-[^a-z]*$/i.test(text) ? msOf(text) : Number.NaN
  return Number.isNaN(at) ? text : new Date(at).toISOString()
}

/** A time in UTC, in epoch milliseconds. */
function msOf(text: string): number {
  return Date.parse(`${text.replace(' ', 'T')}:00`)
}
