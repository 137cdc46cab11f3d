import type { PostgresAddress } from '../../src/store/postgres/address.ts'
import { migrate } from '../../src/store/postgres/migrate.ts'
import { connectServer, type Server } from '../../src/store/postgres/server.ts'
import { atEndOfFile } from './at-end-of-file.ts'
import { newSchema, openReader, type TestServer } from './postgres.ts'
import { shortPatience } from './real-time.ts'
import type { Row } from './test-mirror.ts'

/** A migrated schema that the tests of a file use one after another: to make one takes longer than most of them. */
export interface KeptSchema {
  address: PostgresAddress
  /** The connections of two workers. */
  servers: readonly [Server, Server]
  rows(sql: string, ...values: unknown[]): Promise<Row[]>
  /** Makes it again as if it were new. */
  empty(): Promise<void>
}

/** Call it once a file, in a test. */
export async function keepSchema(server: Pick<TestServer, 'url'>): Promise<KeptSchema> {
  const address = newSchema(server)
  const open = () => connectServer(address, shortPatience())
  const servers = [await open(), await open()] as const
  await migrate(servers[0])
  for (const one of servers) atEndOfFile(one.close)
  const rows = await openReader(address, atEndOfFile)
  return {
    address,
    servers,
    rows,
    async empty() {
      const [found] = await rows(WHAT_IS_THERE)
      const { made, own, counters } = found as Record<string, string | null>
      if (made) await rows(`DROP TABLE ${made} CASCADE`)
      await rows(`${own}; ${counters}; DELETE FROM sync_settings WHERE name NOT IN ('version', 'views')`)
    },
  }
}

const kept = new Map<string, Promise<KeptSchema>>()

/** The schema of a file's database that its tests use one after another, empty: for those that leave nothing but rows and tables there. */
export async function emptySchema(server: Pick<TestServer, 'url'>): Promise<PostgresAddress> {
  const schema = kept.get(server.url) ?? keepSchema(server)
  kept.set(server.url, schema)
  const { address, empty } = await schema
  await empty()
  return address
}

const WHAT_IS_THERE = `
  SELECT
    string_agg(quote_ident(relname), ', ') FILTER (WHERE relkind = 'r' AND NOT is_own) AS made,
    string_agg('DELETE FROM ' || relname, '; ') FILTER (WHERE relkind = 'r' AND is_own AND relname <> 'sync_settings') AS own,
    string_agg('ALTER SEQUENCE ' || relname || ' RESTART', '; ') FILTER (WHERE relkind = 'S' AND is_own) AS counters
  FROM (
    SELECT relname, relkind, relname LIKE 'sync\\_%' OR relname = 'organizations' AS is_own
    FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace
  ) AS one
`
