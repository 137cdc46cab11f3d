import { Client, type ClientBase, Pool, type QueryConfig, type QueryResult, types } from 'pg'
import { systemCode } from '../../errors.ts'
import { type Rule, type Statement, timeOf, withParameters } from '../core/sql.ts'
import { clientConfig, type PostgresAddress } from './address.ts'
import { storable } from './storable.ts'
import type { Patience } from './waiting.ts'

// The connections of a process, and how statements of rules are sent on them.

export interface Connection {
  /** Sends what pg sends, and returns its result. Throws pg's errors. */
  query: Query
  /** Runs a statement of a rule, and returns what it wants. */
  ask: Ask
  /** A broken one is closed: it may be in a transaction. */
  release(isBroken: boolean): void
}

export type Query = (sent: string | QueryConfig) => Promise<QueryResult>

export type Ask = (statement: Statement) => Promise<unknown>

/** Few, since a server has few to give, and a page's statements take a millisecond; but a long one leaves room for the lease. */
const MOST_CONNECTIONS = 4

/** A statement is watched so often, and after so long the server is asked whether it still works on it. */
const WATCH_EVERY_MS = 5000
const LOOK_AFTER_MS = 15_000

/** Of a small statement that nobody watches. */
const BOUNDED = { query_timeout: 10_000 }

/** What has taken longer is given up once the process is to stop, and how often that is looked at then. */
const MOST_WHEN_STOPPING_MS = 3000
const WATCH_WHEN_STOPPING_MS = 1000

/** Opens connections that give up a statement whose server does not work on it any more, so that no process waits for it forever. */
export function createConnections(address: PostgresAddress, { elapsed, every, signal }: Patience) {
  const config = clientConfig(address)
  /** The number of the server's process for each connection. A pooler tells pg another one. */
  const backends = new WeakMap<ClientBase, number>()
  const pool = new Pool({
    ...config,
    max: MOST_CONNECTIONS,
    idleTimeoutMillis: 30_000,
    async onConnect(client) {
      // The pool does not listen to a connection in use: without this, a cut between two statements would end the process.
      client.on('error', () => {})
      const { rows } = await client.query<{ pid: number }>({
        text: 'SELECT pg_backend_pid() AS pid',
        ...BOUNDED,
      })
      backends.set(client, rows[0]?.pid ?? 0)
    },
  })
  // The next statement that needs the connection reports it.
  pool.on('error', () => {})
  /** When the statement of a connection began. */
  const inFlight = new Map<ClientBase, number>()

  /** What is waited for of pg, by how to give it up, and since when. */
  const waits = new Map<(error: Error) => void, number>()

  /** Waits for pg; once the process is to stop, not for long. What is given up goes on. */
  function bounded<T>(task: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      waits.set(reject, elapsed())
      task.then(resolve, reject).finally(() => waits.delete(reject))
    })
  }

  const stopEnding = every(WATCH_WHEN_STOPPING_MS, () => {
    if (!signal.aborted) return
    const from = elapsed() - MOST_WHEN_STOPPING_MS
    for (const [client, since] of inFlight) if (since < from) destroy(client)
    for (const [giveUp, since] of waits)
      if (since < from) giveUp(new Error('Connection terminated since the process is to stop'))
  })
  const stopWatching = every(WATCH_EVERY_MS, () => {
    for (const [client, since] of inFlight)
      if (elapsed() - since > LOOK_AFTER_MS)
        void isLost(client).then((found) => {
          if (found && inFlight.get(client) === since) destroy(client)
        })
  })

  /** Whether the server is not at work on a connection, or is gone. It may be where it lets nobody else in. */
  async function isLost(client: ClientBase): Promise<boolean> {
    const other = new Client({ ...config, ...BOUNDED })
    other.on('error', () => {})
    try {
      await other.connect()
      const sql = "SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND state = 'active'"
      return (await other.query(sql, [backends.get(client)])).rows.length === 0
    } catch (error) {
      return systemCode(error) !== '53300'
    } finally {
      void other.end().catch(() => {})
    }
  }

  return {
    async open(): Promise<Connection> {
      const connecting = pool.connect()
      const client = await bounded(connecting).catch((error: unknown) => {
        connecting.then((late) => late.release(true)).catch(() => {})
        throw error
      })
      const query: Query = async (sent) => {
        inFlight.set(client, elapsed())
        try {
          return await client.query(sent)
        } finally {
          inFlight.delete(client)
        }
      }
      return { query, ask: askBy(query), release: (isBroken) => client.release(isBroken) }
    },
    async close(): Promise<void> {
      await bounded(pool.end()).catch(() => {})
      stopWatching()
      stopEnding()
    },
  }
}

/** Ends a connection at once, whatever the server is doing. */
function destroy(client: ClientBase): void {
  const { connection } = client as unknown as { connection: { stream: { destroy(): void } } }
  connection.stream.destroy()
}

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

/** Asks by prepared statements, with values as a file has them. */
export function askBy(query: Query): Ask {
  return async ({ text, values, wants }) => {
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
}

/** A statement as pg prepares it once a connection, by its name. */
type Prepared = { name: string } & ReturnType<typeof numbered>

const known = new Map<string, Prepared>()

function preparedOf(text: string): Prepared {
  const before = known.get(text)
  if (before) return before
  const prepared = { name: `s${known.size}`, ...numbered(text) }
  known.set(text, prepared)
  return prepared
}

/** A text with `$1` for the first of its parameters, and their names in that order. */
export function numbered(text: string): { text: string; parameters: string[] } {
  const parameters: string[] = []
  const written = withParameters(text, (name, type) => {
    if (!parameters.includes(name)) parameters.push(name)
    return `$${parameters.indexOf(name) + 1}${type === undefined ? '' : `::${type}`}`
  })
  return { text: written, parameters }
}

const { BOOL, INT8, TIMESTAMPTZ }: Record<'BOOL' | 'INT8' | 'TIMESTAMPTZ', number> = types.builtins

/** Values as a file has them: booleans are 0 and 1, our own counts and ids are far below 2^53, times are ISO texts. */
const getTypeParser = ((type: number, format?: 'text' | 'binary') => {
  if (type === BOOL) return (text: string) => (text === 't' ? 1 : 0)
  if (type === INT8) return Number
  if (type === TIMESTAMPTZ) return (text: string) => timeOf(msOf(text))
  return format === 'binary' ? types.getTypeParser(type, 'binary') : types.getTypeParser(type, 'text')
}) as typeof types.getTypeParser

/** A time in UTC, in epoch milliseconds. */
export function msOf(text: string): number {
  return Date.parse(`${text.replace(' ', 'T')}:00`)
}
