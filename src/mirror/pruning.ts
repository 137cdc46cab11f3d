import type { Job } from '../sync/types.ts'
import type { Connection } from './database.ts'

/** Rows that one pruning takes at most, so that it never holds anybody up; the rest goes after the next runs. */
const AT_ONCE = 500

/** Takes away what a job's runs leave behind and nobody needs any more. */
export interface Pruning {
  /** Lines of `sync_runs` and closed walks from before this time; the job's last run and last complete full walk stay. */
  runs(job: Job, before: string): void
  /** The page ledger of walks that closed, but for the last two complete full ones. */
  ledger(job: Job): void
}

export function createPruning(connection: Connection): Pruning {
  const pruneRuns = connection.prepare(`
    DELETE FROM sync_runs
    WHERE id IN (
      SELECT id
      FROM sync_runs
      WHERE organization_id = :organization AND collection = :collection AND started_at < :before
        AND id <> (SELECT max(id) FROM sync_runs WHERE organization_id = :organization AND collection = :collection)
      ORDER BY id
      LIMIT ${AT_ONCE}
    )
  `)
  const pruneWalks = connection.prepare(`
    DELETE FROM sync_walks
    WHERE id IN (
      SELECT id
      FROM sync_walks
      WHERE organization_id = :organization AND collection = :collection AND status <> 'open' AND updated_at < :before
        AND id IS NOT (
          SELECT max(id)
          FROM sync_walks
          WHERE organization_id = :organization AND collection = :collection AND status = 'complete' AND kind = 'full'
        )
      ORDER BY id
      LIMIT ${AT_ONCE}
    )
  `)
  // It is called after each walk, so only the latest walks can still have a ledger.
  const pruneLedger = connection.prepare(`
    DELETE FROM sync_pages
    WHERE walk_id IN (
      SELECT id
      FROM sync_walks
      WHERE organization_id = :organization AND collection = :collection AND status <> 'open'
        AND id NOT IN (
          SELECT id
          FROM sync_walks
          WHERE organization_id = :organization AND collection = :collection AND status = 'complete' AND kind = 'full'
          ORDER BY id DESC
          LIMIT 2
        )
      ORDER BY id DESC
      LIMIT 20
    )
  `)
  return {
    runs(job, before) {
      pruneRuns.run({ ...names(job), before })
      pruneWalks.run({ ...names(job), before })
    },
    ledger: (job) => {
      pruneLedger.run(names(job))
    },
  }
}

function names({ organization, collection }: Job) {
  return { organization: organization.id, collection: collection.name }
}
