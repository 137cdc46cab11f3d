import { addressOf, assertSameAddress, HOLDS_ANYTHING, otherApi } from '../api-address.ts'
import type { Server } from './server/server.ts'
import type { Sql } from './sql.ts'

/**
 * Notes the API whose lists the mirror holds, so that lists of two APIs are never mixed. Throws UsageError if they are
 * another API's, unless that is accepted.
 */
export async function claimAddress(server: Server, baseUrl: string, accept: boolean): Promise<void> {
  const address = addressOf(baseUrl)
  if ((await knownAddress(server)) === address) return
  await server.transaction(async (sql) => {
    // One after another, since each may find none.
    await sql.exec('LOCK TABLE sync_settings IN SHARE ROW EXCLUSIVE MODE')
    if (!accept) await assertSameApi(server, baseUrl, sql)
    await sql.rows(
      "INSERT INTO sync_settings (name, value) VALUES ('address', $1) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
      [address],
    )
  })
}

/** Throws UsageError if the schema holds the lists of another address. */
export async function assertSameApi(
  server: Server,
  baseUrl: string,
  sql: Pick<Sql, 'rows'> = server,
): Promise<void> {
  const known = await knownAddress(sql)
  if (known === null || known === addressOf(baseUrl)) return
  const held = await sql.rows(HOLDS_ANYTHING)
  if (held.length === 0) return
  const { schema, database } = server.address
  const place = `the schema ${schema} of the database ${database}`
  throw otherApi(known, baseUrl, { place, other: 'schema in "database"' })
}

/** Throws JobError if another worker has noted another address since this one noted its own. */
export async function assertAddress(sql: Pick<Sql, 'rows'>, baseUrl: string): Promise<void> {
  assertSameAddress(await knownAddress(sql), baseUrl)
}

async function knownAddress(sql: Pick<Sql, 'rows'>): Promise<string | null> {
  const [row] = await sql.rows<{ value: string }>("SELECT value FROM sync_settings WHERE name = 'address'")
  return row?.value ?? null
}
