import { Client } from 'pg'
import { onTestFinished } from 'vitest'
import type { PostgresAddress } from '../../src/store/postgres/server/address.ts'
import type { Row } from './test-mirror.ts'

export { newSchema, startPostgres, type TestServer } from './postgres-server.ts'

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
