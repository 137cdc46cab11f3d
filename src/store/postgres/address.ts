import { JobError, UsageError } from '../../errors.ts'
import { addressOf } from '../api-address.ts'
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
  const [address, known] = [addressOf(baseUrl), await knownAddress(sql)]
  if (known === null || known === address || !(await holdsAnything(sql))) return
  const { schema, database } = server.address
  throw new UsageError(
    `the schema ${schema} of the database ${database} holds the lists of ${known}, and api.baseUrl of the configuration names ` +
      `${address}: nothing was sent or written. If that is another address of the same API, run "admin-mirror sync ` +
      '--accept-address"; if it is another API, name another schema in "database"',
  )
}

/** Throws JobError if another worker has noted another address since this one noted its own. */
export async function assertAddress(sql: Pick<Sql, 'rows'>, baseUrl: string): Promise<void> {
  const [address, known] = [addressOf(baseUrl), await knownAddress(sql)]
  if (known === null || known === address) return
  throw new JobError(
    'CONFIGURATION',
    `the mirror holds the lists of ${known} by now, and this process was started with ${address}: nothing is sent. Start ` +
      'it again with the configuration that is right',
  )
}

async function knownAddress(sql: Pick<Sql, 'rows'>): Promise<string | null> {
  const [row] = await sql.rows<{ value: string }>("SELECT value FROM sync_settings WHERE name = 'address'")
  return row?.value ?? null
}

/** Before the first page the noted address may be a typing error, and any other one may replace it. */
async function holdsAnything(sql: Pick<Sql, 'rows'>): Promise<boolean> {
  const rows = await sql.rows(`
    SELECT 1 FROM sync_walks WHERE pages > 0
    UNION ALL
    SELECT 1 FROM sync_jobs WHERE rows > 0 OR owner IS NOT NULL
    LIMIT 1
  `)
  return rows.length > 0
}
