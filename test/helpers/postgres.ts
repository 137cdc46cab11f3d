import { randomBytes } from 'node:crypto'
import { Client } from 'pg'
import { onTestFinished } from 'vitest'
import type { PostgresAddress } from '../../src/store/postgres/server/address.ts'
import type { TestServer } from './postgres-server.ts'
import type { Row } from './test-mirror.ts'

export { startPostgres, type TestServer } from './postgres-server.ts'

/** The address of a schema that no other test uses. */
export function newSchema({ url }: Pick<TestServer, 'url'>): PostgresAddress {
  const { hostname, port, username, password, pathname } = new URL(url)
  return {
    host: hostname,
    port: Number(port || 5432),
    user: decodeURIComponent(username),
    database: pathname.slice(1),
    schema: `mirror_${randomBytes(6).toString('hex')}`,
    tls: null,
    password: () => decodeURIComponent(password),
  }
}

/** What anybody reads of a schema, on a connection of its own. */
export async function openReader(
  address: PostgresAddress,
): Promise<(sql: string, ...values: unknown[]) => Promise<Row[]>> {
  const client = new Client({
    ...address,
    password: address.password(),
    options: `-c search_path=${address.schema} -c TimeZone=UTC`,
  })
  client.on('error', () => {})
  await client.connect()
  onTestFinished(() => client.end().catch(() => {}))
  return async (sql, ...values) => (await client.query<Row>(sql, values)).rows
}
