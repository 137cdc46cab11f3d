import { randomBytes } from 'node:crypto'
import { Client } from 'pg'
import { inject, onTestFinished } from 'vitest'
import type { PostgresAddress } from '../../src/store/postgres/address.ts'
import { atEndOfFile } from './at-end-of-file.ts'
import type { TestServer } from './postgres-server.ts'
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
