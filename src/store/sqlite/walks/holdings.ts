import type { Connection } from '../file/open.ts'
import { quoted } from '../sql.ts'
import { declarationOf, tableName } from '../tables/declarations.ts'

/** How much a mirror holds of a job: live rows, superseded versions, items that could not be placed, walks, the pages of their ledger, and runs. */
export interface Holdings {
  rows: number
  versions: number
  rejects: number
  walks: number
  pages: number
  runs: number
}

export const NOTHING_HELD: Holdings = { rows: 0, versions: 0, rejects: 0, walks: 0, pages: 0, runs: 0 }

/** The organizations that the mirror knows, by their last names. */
export function knownOrganizations(connection: Connection): { id: string; name: string }[] {
  return connection.prepare('SELECT id, name FROM organizations ORDER BY name, id').all() as {
    id: string
    name: string
  }[]
}

/** The collections of an organization that the mirror has jobs of. */
export function collectionsOf(connection: Connection, organizationId: string): string[] {
  const sql = 'SELECT collection FROM sync_jobs WHERE organization_id = ? ORDER BY collection'
  return connection.prepare(sql).pluck().all(organizationId) as string[]
}

export function holdingsOf(connection: Connection, organizationId: string, collection: string): Holdings {
  const count = (sql: string, ...values: string[]) =>
    connection
      .prepare(`SELECT count(*) FROM ${sql}`)
      .pluck()
      .get(...values) as number
  const inTable = (table: string) =>
    declarationOf(connection, table) === undefined
      ? 0
      : count(`${quoted(table)} WHERE "_organization_id" = ?`, organizationId)
  const ofJob = (table: string) =>
    count(`${table} WHERE organization_id = ? AND collection = ?`, organizationId, collection)
  return {
    rows: inTable(tableName(collection, 'raw')),
    versions: inTable(tableName(collection, 'history')),
    rejects: ofJob('sync_rejects'),
    walks: ofJob('sync_walks'),
    pages: ofJob('sync_walks JOIN sync_pages ON walk_id = id'),
    runs: ofJob('sync_runs'),
  }
}
