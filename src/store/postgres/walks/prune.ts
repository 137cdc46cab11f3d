import type { Job } from '../../../sync/types.ts'
import type { Server } from '../server/server.ts'
import { quoted } from '../sql.ts'
import { tableName } from '../tables/shape.ts'
import { OF_JOB, ofJob } from './job.ts'

/** Lines of one statement. */
const PRUNED_AT_ONCE = 5000

/** For an interrupted walk the ledger of others is kept so long: a backfill may stay open for ever. Milliseconds. */
export const OVERLAP_KEPT_MS = 3 * 86_400_000

const NOT_TRUSTED = 'it was interrupted for more than three days, and other walks read the list meanwhile'

/** The last complete full walks of the job, the latest first. */
const LAST_COMPLETE = `
  SELECT id FROM sync_walks WHERE ${OF_JOB} AND status = 'complete' AND kind = 'full' ORDER BY id DESC
`

const OLD_WALKS = `
  SELECT id
  FROM sync_walks
  WHERE ${OF_JOB} AND status <> 'open' AND (updated_at < $3 OR (brief = 1 AND updated_at < $4)) AND id NOT IN (${LAST_COMPLETE} LIMIT 1)
`

// An open full walk needs all pages written since it began: their items are not missing. One that is not trusted removes nothing.
const FIRST_OPEN_PAGE = `
  SELECT coalesce(min(page.sequence), ${Number.MAX_SAFE_INTEGER})
  FROM sync_walks AS opened
  JOIN sync_pages AS page ON page.walk_id = opened.id AND page.ordinal = 1
  WHERE opened.organization_id = $1 AND opened.collection = $2
    AND opened.status = 'open' AND opened.kind = 'full' AND opened.untrusted IS NULL
`

const STATEMENTS = [
  `
    DELETE FROM sync_pages
    WHERE (walk_id, ordinal) IN (
      SELECT page.walk_id, page.ordinal
      FROM sync_walks
      JOIN sync_pages AS page ON page.walk_id = sync_walks.id
      WHERE ${OF_JOB} AND status <> 'open'
        AND (id NOT IN (${LAST_COMPLETE} LIMIT 2) OR id IN (${OLD_WALKS}))
        AND page.sequence < (${FIRST_OPEN_PAGE})
      LIMIT ${PRUNED_AT_ONCE}
    )
    RETURNING 1
  `,
  `
    DELETE FROM sync_walks
    WHERE id IN (
      ${OLD_WALKS} AND NOT EXISTS (SELECT 1 FROM sync_pages WHERE walk_id = sync_walks.id) ORDER BY id LIMIT ${PRUNED_AT_ONCE}
    )
    RETURNING 1
  `,
  `
    DELETE FROM sync_runs
    WHERE id IN (
      SELECT id
      FROM sync_runs
      WHERE ${OF_JOB} AND (started_at < $3 OR (brief = 1 AND started_at < $4 AND status <> 'running')) AND id <> (SELECT max(id) FROM sync_runs WHERE ${OF_JOB})
      ORDER BY id
      LIMIT ${PRUNED_AT_ONCE}
    )
    RETURNING 1
  `,
]

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
  /** Superseded versions that ended before this time go; null: none do. */
  versionsBefore: string | null
}

/** Deletes, in batches, what a job's runs left and no walk needs. After a signal to stop, the next run deletes the rest. */
export async function pruneJob(
  server: Server,
  job: Job,
  { before, briefBefore, overlapBefore, versionsBefore }: PruneTimes,
  signal: AbortSignal,
): Promise<void> {
  await server.rows(
    `
      UPDATE sync_walks
      SET untrusted = '${NOT_TRUSTED}'
      WHERE ${OF_JOB} AND status = 'open' AND kind = 'full' AND pages > 0 AND updated_at < $3 AND untrusted IS NULL
    `,
    [...ofJob(job), overlapBefore],
  )
  const inBatches = async (statement: string, values: readonly unknown[]) => {
    let count = PRUNED_AT_ONCE
    while (count === PRUNED_AT_ONCE && !signal.aborted) count = (await server.rows(statement, values)).length
  }
  for (const statement of STATEMENTS) await inBatches(statement, [...ofJob(job), before, briefBefore])
  if (versionsBefore === null) return
  const history = quoted(tableName(job.collection.name, 'history'))
  await inBatches(
    `
      DELETE FROM ${history}
      WHERE ctid IN (
        SELECT ctid FROM ${history} WHERE "_organization_id" = $1 AND "_valid_to" < $2 ORDER BY "_valid_to" LIMIT ${PRUNED_AT_ONCE}
      )
      RETURNING 1
    `,
    [job.organization.id, versionsBefore],
  )
}
