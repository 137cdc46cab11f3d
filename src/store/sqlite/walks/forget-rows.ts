import type { Connection } from '../file/open.ts'
import { quoted } from '../sql.ts'
import { declarationOf, tableName } from '../tables/declarations.ts'
import type { Holdings } from './holdings.ts'

/** The job that is forgotten. */
export interface ForgottenJob {
  organizationId: string
  collection: string
}

const OF_JOB = 'organization_id = :organizationId AND collection = :collection'

/**
 * What goes first, all at once, so that a list that is half deleted looks like one that was never read: a walk that is
 * complete says how fresh the rows are, and an open one that what it has seen is there. The walks themselves go after
 * their ledger, or nobody would find that any more, and a later walk with the same number would take it for its own.
 * Returns how many runs went.
 */
export function disown(connection: Connection, job: ForgottenJob, at: string): number {
  connection
    .prepare(`
      UPDATE sync_walks
      SET status = 'abandoned', coverage = NULL, expected_missed = NULL, finished_at = coalesce(finished_at, :at)
      WHERE ${OF_JOB}
    `)
    .run({ ...job, at })
  // All that the job's line knows beside its rows and its owner is told anew.
  connection
    .prepare(`
      INSERT OR REPLACE INTO sync_jobs (organization_id, collection, configured, rows, owner)
      SELECT organization_id, collection, configured, rows, owner FROM sync_jobs WHERE ${OF_JOB}
    `)
    .run({ ...job })
  return connection.prepare(`DELETE FROM sync_runs WHERE ${OF_JOB}`).run({ ...job }).changes
}

/** Takes away what the mirror holds of a job, once that is disowned. */
export interface Removing {
  /** Up to so many rows, which are counted into `gone`. True when nothing is left. */
  step(rows: number, gone: Holdings): boolean
}

type Remove = (rows: number) => number

/** For one transaction: the next one may find other tables. */
export function createRemoving(connection: Connection, job: ForgottenJob): Removing {
  const parts = [
    ...tablesWith(connection, ['walk_id']).map((table) => ofWalks(connection, job, table)),
    ...tablesWith(connection, ['organization_id', 'collection']).map((table) =>
      ofJob(connection, job, table),
    ),
    { counts: 'rows' as const, remove: deletingRows(connection, job) },
    {
      counts: 'versions' as const,
      remove: deletingFrom(connection, job, tableName(job.collection, 'history')),
    },
  ]
  return {
    step(rows, gone) {
      let left = rows
      for (const { counts, remove } of parts) {
        const removed = remove(left)
        if (counts) gone[counts] += removed
        left -= removed
        if (left <= 0) return false
      }
      return true
    },
  }
}

interface Part {
  /** What is told of it; undefined: nothing. */
  counts: keyof Holdings | undefined
  remove: Remove
}

const COUNTED: Record<string, keyof Holdings> = {
  sync_pages: 'pages',
  sync_walks: 'walks',
  sync_rejects: 'rejects',
}

/** The job's line is the sign that there is something left to forget, and goes last; its runs have gone already. */
const APART = ['sync_jobs', 'sync_runs']

/** Our own tables that hold such columns, whichever they are: none is to be forgotten here. */
function tablesWith(connection: Connection, columns: readonly string[]): string[] {
  const tables = connection
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND substr(name, 1, 5) = 'sync_'")
    .pluck()
    .all() as string[]
  const has = connection.prepare('SELECT 1 FROM pragma_table_info(?) WHERE name = ?')
  return tables.filter(
    (table) => !APART.includes(table) && columns.every((column) => has.get(table, column) !== undefined),
  )
}

function primaryKey(connection: Connection, table: string): string {
  const sql = 'SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk'
  return (connection.prepare(sql).pluck().all(table) as string[]).map(quoted).join(', ')
}

function ofWalks(connection: Connection, job: ForgottenJob, table: string): Part {
  const key = primaryKey(connection, table)
  const statement = connection.prepare(`
    DELETE FROM ${table}
    WHERE (${key}) IN (
      SELECT ${key} FROM sync_walks CROSS JOIN ${table} ON walk_id = sync_walks.id WHERE ${OF_JOB} LIMIT :rows
    )
  `)
  return { counts: COUNTED[table], remove: (rows) => statement.run({ ...job, rows }).changes }
}

function ofJob(connection: Connection, job: ForgottenJob, table: string): Part {
  const key = primaryKey(connection, table)
  const statement = connection.prepare(
    `DELETE FROM ${table} WHERE (${key}) IN (SELECT ${key} FROM ${table} WHERE ${OF_JOB} LIMIT :rows)`,
  )
  return { counts: COUNTED[table], remove: (rows) => statement.run({ ...job, rows }).changes }
}

/** Of the raw and the typed table the same rows, since both go in the order of the keys. */
function deletingRows(connection: Connection, job: ForgottenJob): Remove {
  const fromRaw = deletingFrom(connection, job, tableName(job.collection, 'raw'))
  const fromTyped = deletingFrom(connection, job, tableName(job.collection, 'typed'))
  const count = connection.prepare(`UPDATE sync_jobs SET rows = max(0, rows - :removed) WHERE ${OF_JOB}`)
  return (rows) => {
    const removed = Math.max(fromRaw(rows), fromTyped(rows))
    if (removed > 0) count.run({ ...job, removed })
    return removed
  }
}

function deletingFrom(connection: Connection, { organizationId }: ForgottenJob, table: string): Remove {
  if (declarationOf(connection, table) === undefined) return () => 0
  const key = primaryKey(connection, table)
  const order = key === '' ? '_rowid_' : key
  const statement = connection.prepare(`
    DELETE FROM ${quoted(table)}
    WHERE _rowid_ IN (
      SELECT _rowid_ FROM ${quoted(table)} WHERE "_organization_id" = ? ORDER BY ${order} LIMIT ?
    )
  `)
  return (rows) => statement.run(organizationId, rows).changes
}
