import { type QueryConfig, type QueryResult, types } from 'pg'
import { type Rule, type Statement, withParameters } from '../core/sql.ts'
import { storable } from './storable.ts'

/** Where the mirror is. */
export interface PostgresAddress {
  host: string
  port: number
  user: string
  database: string
  /** Letters, digits and `_`. */
  schema: string
  /** A certificate's authority, as a file's text; null: those of the system. Without `tls` there is none. */
  tls: { authority: string | null } | null
  /** A function, so that no log and no error can print it. Undefined: none. */
  password: () => string | undefined
  /** Where the user has written this address, for messages: `"database"`. */
  setting: string
}

/** Where a mirror is, for messages. */
export function placeOf({ schema, database }: Pick<PostgresAddress, 'schema' | 'database'>): string {
  return `the schema ${schema} of the database ${database}`
}

export function serverAt({ host, port }: Pick<PostgresAddress, 'host' | 'port'>): string {
  return `the PostgreSQL server at ${host}:${port}`
}

/** Milliseconds. */
const CONNECT_MS = 10_000

/** What pg connects with. */
export function clientConfig({ host, port, user, database, schema, tls, password }: PostgresAddress) {
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
    // With `host`: pg passes on no IP address, and then any certificate for `localhost` would be accepted.
    ssl: tls
      ? { rejectUnauthorized: true, host, ...(tls.authority === null ? {} : { ca: tls.authority }) }
      : false,
    application_name: 'admin-mirror',
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 5000,
    options: Object.entries(settings)
      .map(([name, value]) => `-c ${name}=${value}`)
      .join(' '),
  }
}

/** Runs a statement of a rule, and returns what it wants. */
export type Ask = (statement: Statement) => Promise<unknown>

/** Runs the statements of a rule, each after the answer of the one before. */
export async function runRule<T>(ask: Ask, rule: Rule<T>): Promise<T> {
  let next = rule.next()
  while (!next.done) {
    let result: unknown
    try {
      result = await ask(next.value)
    } catch (error) {
      // A rule may undo what it has tried.
      next = rule.throw(error)
      continue
    }
    next = rule.next(result)
  }
  return next.value
}

/** Sends what pg sends on a connection. */
export type Query = (sent: string | QueryConfig) => Promise<QueryResult>

export async function askBy(query: Query, { text, values, wants }: Statement): Promise<unknown> {
  if (wants === 'nothing') return query(text)
  const { parameters, ...prepared } = preparedOf(text)
  const sent = parameters.map((name) => {
    const value = values[name]
    if (value === undefined) throw new Error(`a statement has no value for :${name}`)
    return typeof value === 'string' ? storable(value) : value
  })
  const { rows, rowCount } = await query({ ...prepared, values: sent, types: { getTypeParser } })
  return wants === 'rows' ? rows : (rowCount ?? 0)
}

/** A statement that is prepared once a connection. */
interface Prepared {
  name: string
  /** With `$1` for the first parameter. */
  text: string
  parameters: readonly string[]
}

const known = new Map<string, Prepared>()

function preparedOf(text: string): Prepared {
  const before = known.get(text)
  if (before) return before
  const parameters: string[] = []
  const numbered = withParameters(text, (name, type) => {
    if (!parameters.includes(name)) parameters.push(name)
    return `$${parameters.indexOf(name) + 1}${type === undefined ? '' : `::${type}`}`
  })
  const prepared = { name: `s${known.size}`, text: numbered, parameters }
  known.set(text, prepared)
  return prepared
}

const { INT8, TIMESTAMPTZ }: Record<'INT8' | 'TIMESTAMPTZ', number> = types.builtins

/** Our own counts and ids are far below 2^53; times are epoch milliseconds. */
const getTypeParser = ((type: number, format?: 'text' | 'binary') => {
  if (type === INT8) return Number
  if (type === TIMESTAMPTZ) return msOf
  return format === 'binary' ? types.getTypeParser(type, 'binary') : types.getTypeParser(type, 'text')
}) as typeof types.getTypeParser

/** A time in UTC, in epoch milliseconds. */
export function msOf(text: string): number {
  return Date.parse(`${text.replace(' ', 'T')}:00`)
}
