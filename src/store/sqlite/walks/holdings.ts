import { keyColumnNames, splitKey } from '../../columns/catalog.ts'
import { type Connection, quoted } from '../sql.ts'
import { knownKey } from '../tables/column-records.ts'
import { declarationOf, type TableKind, tableName } from '../tables/declarations.ts'

/** One collection of an organization that `forget` deletes. */
export interface ForgottenJob {
  organizationId: string
  collection: string
}

/** How much the mirror holds of a job. `pages`: lines of the page ledger. */
export interface Holdings {
  rows: number
  versions: number
  rejects: number
  walks: number
  pages: number
  runs: number
}

const OF_JOB = 'organization_id = :organizationId AND collection = :collection'

/**
 * A set of a job's rows. Several tables lose the same rows at once, so that none is left without its raw row.
 */
interface Part {
  /** The number of `Holdings` that counts them; null: none. */
  counts: keyof Holdings | null
  tables: readonly string[]
  where: string
  /** The columns that identify a row, and the order of deletion. */
  key: string
  order: string
}

/** What is deleted of a job, in this order: walks after all that names them, since their ids are used again. */
function partsOf(connection: Connection, { collection }: ForgottenJob): Part[] {
  const lines = (counts: keyof Holdings | null, table: string, key: string, where = OF_JOB): Part => ({
    counts,
    tables: [table],
    where,
    key,
    order: key,
  })
  const rows = (counts: keyof Holdings, kinds: readonly TableKind[]): Part[] => {
    const tables = kinds.map((kind) => tableName(collection, kind))
    if (tables.some((table) => declarationOf(connection, table) === undefined)) return []
    const key = keyColumnNames(splitKey(knownKey(connection, collection) ?? []))
    const where = '"_organization_id" = :organizationId'
    return [
      {
        counts,
        tables: tables.map(quoted),
        where,
        key: '_rowid_',
        order: [...key.map(quoted), '_rowid_'].join(', '),
      },
    ]
  }
  const ofWalks = `walk_id IN (SELECT id FROM sync_walks WHERE ${OF_JOB})`
  return [
    lines(null, 'sync_missing', 'organization_id, collection, key'),
    lines(null, 'sync_column_counts', 'organization_id, collection, "column"'),
    lines(null, 'sync_refreshed', '_rowid_', ofWalks),
    lines('pages', 'sync_pages', '_rowid_', ofWalks),
    lines('walks', 'sync_walks', 'id'),
    lines('rejects', 'sync_rejects', 'organization_id, collection, fingerprint'),
    ...rows('rows', ['raw', 'typed']),
    ...rows('versions', ['history']),
  ]
}

/** Counts what the mirror holds of a job. */
export function holdingsOf(connection: Connection, job: ForgottenJob): Holdings {
  const count = (table: string, where: string) =>
    connection.prepare(`SELECT count(*) FROM ${table} WHERE ${where}`).pluck().get(job) as number
  const held = { rows: 0, versions: 0, rejects: 0, walks: 0, pages: 0, runs: count('sync_runs', OF_JOB) }
  for (const { counts, tables, where } of partsOf(connection, job))
    if (counts) held[counts] = Math.max(...tables.map((table) => count(table, where)))
  return held
}

/** Deletes up to so many rows of a job after `markForgotten`. Returns true when none is left. */
export function deleteHoldings(connection: Connection, job: ForgottenJob, rows: number): boolean {
  let left = rows
  for (const { counts, tables, where, key, order } of partsOf(connection, job)) {
    const gone = tables.map((table) => {
      const chosen = `SELECT ${key} FROM ${table} WHERE ${where} ORDER BY ${order} LIMIT :left`
      return connection.prepare(`DELETE FROM ${table} WHERE (${key}) IN (${chosen})`).run({ ...job, left })
        .changes
    })
    const changes = Math.max(...gone)
    left -= changes
    if (counts === 'rows' && changes > 0)
      connection
        .prepare(`UPDATE sync_jobs SET rows = max(0, rows - :changes) WHERE ${OF_JOB}`)
        .run({ ...job, changes })
    if (left <= 0) return false
  }
  return true
}

/**
 * Makes a job look as if it was never read, before its rows are deleted: a complete walk would say how fresh
 * the rows are, and an open one would count its seen items as stored.
 */
export function markForgotten(connection: Connection, job: ForgottenJob, at: string): void {
  connection
    .prepare(`
      UPDATE sync_walks
      SET status = 'abandoned', coverage = NULL, expected_missed = NULL, finished_at = coalesce(finished_at, :at)
      WHERE ${OF_JOB}
    `)
    .run({ ...job, at })
  // Clears all columns of the job but its rows and its owner.
  connection
    .prepare(`
      INSERT OR REPLACE INTO sync_jobs (organization_id, collection, configured, rows, owner)
      SELECT organization_id, collection, configured, rows, owner FROM sync_jobs WHERE ${OF_JOB}
    `)
    .run(job)
  connection.prepare(`DELETE FROM sync_runs WHERE ${OF_JOB}`).run(job)
}

/** The organizations that the mirror knows, with their latest names. */
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
