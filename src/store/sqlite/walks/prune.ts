import type { Job } from '../../../sync/types.ts'
import type { Connection } from '../sql.ts'
import { nameOf, OF_JOB } from './jobs.ts'

/** Lines of the page ledger: some tens of milliseconds. */
const PRUNED_AT_ONCE = 2000

/** The last complete full walks of the job, the latest first. */
const LAST_COMPLETE = `
  SELECT id
  FROM sync_walks
  WHERE ${OF_JOB} AND status = 'complete' AND kind = 'full'
  ORDER BY id DESC
`

const OLD_WALKS = `
  SELECT id
  FROM (
    SELECT id, status FROM sync_walks WHERE ${OF_JOB} AND status <> 'open' AND updated_at < :before
    UNION
    SELECT id, status FROM sync_walks WHERE ${OF_JOB} AND brief = 1 AND updated_at < :briefBefore
  )
  WHERE status <> 'open' AND id NOT IN (${LAST_COMPLETE} LIMIT 1)
`

// An open full walk needs all pages written since it began: their items are not missing. One that is not trusted removes nothing.
const FIRST_OPEN_PAGE = `
  SELECT coalesce(min(page._rowid_), ${Number.MAX_SAFE_INTEGER})
  FROM sync_walks AS opened
  CROSS JOIN sync_pages AS page ON page.walk_id = opened.id AND page.ordinal = 1
  WHERE opened.organization_id = :organization AND opened.collection = :collection
    AND opened.status = 'open' AND opened.kind = 'full' AND opened.untrusted IS NULL
`

/** For an interrupted walk the ledger of others is kept so long: a backfill may stay open for ever. Milliseconds. */
export const OVERLAP_KEPT_MS = 3 * 86_400_000

const NOT_TRUSTED = 'it was interrupted for more than three days, and other walks read the list meanwhile'

/** Refreshes that found nothing, and walks in their place, are kept so long. Milliseconds. */
export const BRIEF_KEPT_MS = 86_400_000

/** ISO 8601. */
export interface PruneTimes {
  /** Older runs and closed walks go. */
  before: string
  /** So do older refreshes that found nothing, and walks in their place. */
  briefBefore: string
  /** Open walks that were interrupted before this time are trusted no longer. */
  overlapBefore: string
}

/**
 * Returns a function that deletes a batch of what a job's runs left: the page ledger of closed walks, except
 * the last two complete full ones; closed walks and rows of `sync_runs` from before a time, except the last
 * run and the last complete full walk. It returns true when none is left.
 */
export function createPruning(connection: Connection): (job: Job, times: PruneTimes) => boolean {
  const distrust = connection.prepare(`
    UPDATE sync_walks
    SET untrusted = '${NOT_TRUSTED}'
    WHERE ${OF_JOB} AND status = 'open' AND kind = 'full' AND pages > 0 AND updated_at < :overlapBefore AND untrusted IS NULL
  `)
  const statements = [
    `
      DELETE FROM sync_pages
      WHERE _rowid_ IN (
        SELECT sync_pages._rowid_
        FROM sync_walks
        CROSS JOIN sync_pages ON walk_id = id
        WHERE ${OF_JOB} AND status <> 'open'
          AND (id NOT IN (${LAST_COMPLETE} LIMIT 2) OR id IN (${OLD_WALKS}))
          AND sync_pages._rowid_ < (${FIRST_OPEN_PAGE})
        LIMIT :rows
      )
    `,
    // A walk goes after its page ledger, since a later walk may get the same id.
    `
      DELETE FROM sync_walks
      WHERE id IN (${OLD_WALKS} AND NOT EXISTS (SELECT 1 FROM sync_pages WHERE walk_id = sync_walks.id) ORDER BY id LIMIT :rows)
    `,
    `
      DELETE FROM sync_runs
      WHERE id IN (
        SELECT id FROM (SELECT id, started_at FROM sync_runs WHERE ${OF_JOB} ORDER BY id LIMIT :rows)
        WHERE started_at < :before
        UNION
        SELECT id FROM sync_runs WHERE ${OF_JOB} AND brief = 1 AND started_at < :briefBefore AND status <> 'running'
        EXCEPT
        SELECT max(id) FROM sync_runs WHERE ${OF_JOB}
      )
    `,
  ].map((sql) => connection.prepare(sql))
  return (job, { before, briefBefore, overlapBefore }) => {
    distrust.run({ ...nameOf(job), overlapBefore })
    let left = PRUNED_AT_ONCE
    for (const statement of statements) {
      left -= statement.run({ ...nameOf(job), before, briefBefore, rows: left }).changes
      if (left <= 0) return false
    }
    return true
  }
}
