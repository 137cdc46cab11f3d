import type { Job } from '../../../sync/types.ts'
import type { Connection } from '../file/open.ts'

/** Takes away what a job's runs leave behind and nobody needs any more. */
export interface Pruning {
  /**
   * The page ledger of walks that closed, but for the last two complete full ones; then closed walks and lines of
   * `sync_runs` from before this time: the job's last run and last complete full walk stay. Up to so many rows at once.
   * True when nothing is left to take away.
   */
  step(job: Job, before: string, rows: number): boolean
}

const OF_JOB = 'organization_id = :organization AND collection = :collection'

/** The last complete full walks of the job, the latest first. */
const LAST_COMPLETE = `
  SELECT id
  FROM sync_walks
  WHERE ${OF_JOB} AND status = 'complete' AND kind = 'full'
  ORDER BY id DESC
`

const OLD_WALKS = `
  SELECT id
  FROM sync_walks
  WHERE ${OF_JOB} AND status <> 'open' AND updated_at < :before AND id NOT IN (${LAST_COMPLETE} LIMIT 1)
`

export function createPruning(connection: Connection): Pruning {
  const statements = [
    // A walk goes after its ledger, or nobody would find that any more.
    `
      DELETE FROM sync_pages
      WHERE (walk_id, ordinal) IN (
        SELECT walk_id, ordinal
        FROM sync_walks
        CROSS JOIN sync_pages ON walk_id = id
        WHERE ${OF_JOB} AND status <> 'open'
          AND (id NOT IN (${LAST_COMPLETE} LIMIT 2) OR id IN (${OLD_WALKS}))
        LIMIT :rows
      )
    `,
    `
      DELETE FROM sync_seen_since
      WHERE (walk_id, mark) IN (
        SELECT walk_id, mark
        FROM sync_walks
        CROSS JOIN sync_seen_since ON walk_id = id
        WHERE ${OF_JOB} AND status <> 'open'
        LIMIT :rows
      )
    `,
    `DELETE FROM sync_walks WHERE id IN (${OLD_WALKS} ORDER BY id LIMIT :rows)`,
    `
      DELETE FROM sync_runs
      WHERE id IN (
        SELECT id
        FROM sync_runs
        WHERE ${OF_JOB} AND started_at < :before AND id <> (SELECT max(id) FROM sync_runs WHERE ${OF_JOB})
        ORDER BY id
        LIMIT :rows
      )
    `,
  ].map((sql) => connection.prepare(sql))
  return {
    step({ organization, collection }, before, rows) {
      const job = { organization: organization.id, collection: collection.name }
      let left = rows
      for (const statement of statements) {
        left -= statement.run({ ...job, before, rows: left }).changes
        if (left <= 0) return false
      }
      return true
    },
  }
}
