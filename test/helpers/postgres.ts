import { randomBytes } from 'node:crypto'
import { Client } from 'pg'
import { inject, onTestFinished } from 'vitest'
import type { PostgresAddress } from '../../src/store/postgres/address.ts'
import { atEndOfFile } from './at-end-of-file.ts'
import { newSchema, type TestServer } from './postgres-server.ts'
import type { Row } from './test-mirror.ts'

export { newSchema, startPostgres, type TestServer } from './postgres-server.ts'

/** A database of the file's own on the server of all (shared-postgres.ts), or why there is none. Call it once a file. */
export async function openDatabase(): Promise<Pick<TestServer, 'url' | 'missing'>> {
  const shared = inject('postgres')
  if (shared.missing !== null) return shared
  const name = `tests_${randomBytes(6).toString('hex')}`
  const run = async (sql: string) => {
    const client = new Client(shared.url)
    await client.connect()
    await client.query(sql)
    await client.end()
  }
  await run(`CREATE DATABASE ${name}`)
  atEndOfFile(() => run(`DROP DATABASE ${name} WITH (FORCE)`))
  const url = new URL(shared.url)
  url.pathname = `/${name}`
  return { url: url.href, missing: null }
}

/** What anybody reads of a schema, on a connection of its own that ends with the test, or as `atEnd` says. */
export async function openReader(
  address: PostgresAddress,
  atEnd: (end: () => Promise<void>) => void = onTestFinished,
): Promise<(sql: string, ...values: unknown[]) => Promise<Row[]>> {
  const client = new Client({
    ...address,
    password: address.password(),
    options: `-c search_path=${address.schema} -c TimeZone=UTC`,
  })
  client.on('error', () => {})
  await client.connect()
  atEnd(() => client.end().catch(() => {}))
  return async (sql, ...values) => (await client.query<Row>(sql, values)).rows
}

const kept = new Map<string, { address: PostgresAddress; rows: Awaited<ReturnType<typeof openReader>> }>()

/**
 * The schema of a file's database that its tests use one after another, as if it were new: to make one takes longer than most of them.
 * For those that leave nothing but rows and tables there.
 */
export async function emptySchema(server: Pick<TestServer, 'url'>): Promise<PostgresAddress> {
  const known = kept.get(server.url)
  if (!known) {
    const address = newSchema(server)
    kept.set(server.url, { address, rows: await openReader(address, atEndOfFile) })
    return address
  }
  const { address, rows } = known
  const [found] = await rows(WHAT_IS_THERE)
  const { made, own, counters } = found as Record<string, string | null>
  if (made) await rows(`DROP TABLE ${made} CASCADE`)
  await rows(`${own}; ${counters}; DELETE FROM sync_settings WHERE name NOT IN ('version', 'views')`)
  return address
}

const WHAT_IS_THERE = `
  SELECT
    string_agg(quote_ident(relname), ', ') FILTER (WHERE relkind = 'r' AND NOT is_own) AS made,
    string_agg('DELETE FROM ' || relname, '; ') FILTER (WHERE relkind = 'r' AND is_own AND relname <> 'sync_settings') AS own,
    string_agg('ALTER SEQUENCE ' || relname || ' RESTART', '; ') FILTER (WHERE relkind = 'S' AND is_own) AS counters
  FROM (
    SELECT relname, relkind, relname LIKE 'sync\\_%' AS is_own
    FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace
  ) AS one
`
