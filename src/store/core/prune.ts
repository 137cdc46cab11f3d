import type { Job } from '../../sync/types.ts'
import { identityOf, tableName } from '../columns/catalog.ts'
import { namesOf, OF_JOB } from './jobs.ts'
import { BATCH_ROWS, type Dialect, deleteBatch, type Rule, run } from './sql.ts'
import { knownCatalog } from './tables.ts'
import { LAST_TRUSTED, ofWalks } from './walks.ts'

// Deletes what runs of a job have left and no walk needs any more.

/** For how long an interrupted full walk learns what others read meanwhile: a backfill may stay open for ever. Milliseconds. */
const OVERLAP_KEPT_MS = 3 * 86_400_000

const NOT_TRUSTED = 'it was interrupted for more than three days, and the list was read meanwhile'

const OVER = "status <> 'open'"

/** Refreshes, and walks of short lists in their place. */
const FOUND_NOTHING = `${OF_JOB} AND brief = 1 AND status <> 'running'`

/** The last complete full walk, and, since the last trusted one, the first of each list that was configured: they tell why rows are missing. */
const KEPT_WALKS = `
  SELECT max(id) FROM sync_walks WHERE ${OF_JOB} AND status = 'complete' AND kind = 'full' HAVING max(id) IS NOT NULL
  UNION
  SELECT min(id) FROM sync_walks WHERE ${OF_JOB} AND pages > 0 AND id >= ${LAST_TRUSTED} GROUP BY path, scope
`

/**
 * Deletes a batch: the page ledger of closed walks, and what was read while they were open; then closed walks and rows of `sync_runs` older than
 * `keepRuns`, and those that found nothing in place of a refresh, except the last ones; and each refresh that found nothing. Returns true when nothing
 * is left.
 * @param ago Returns the time that many milliseconds ago.
 */
export function* pruneWalks(job: Job, ago: (ms: number) => string, keepRuns: number): Rule<boolean> {
  const names = namesOf(job)
  yield* run(
    `
      UPDATE sync_walks
      SET untrusted = '${NOT_TRUSTED}'
      WHERE ${OF_JOB} AND status = 'open' AND kind = 'full' AND pages > 0 AND updated_at < :before AND untrusted IS NULL
        AND EXISTS (SELECT 1 FROM sync_refreshed WHERE walk_id = sync_walks.id)
    `,
    { ...names, before: ago(OVERLAP_KEPT_MS) },
  )
  const refreshed = ofWalks(`${OVER} OR untrusted IS NOT NULL`)
  if ((yield* deleteBatch('sync_refreshed', ['walk_id', 'key'], refreshed, names)) === BATCH_ROWS)
    return false
  if ((yield* deleteBatch('sync_pages', ['walk_id', 'ordinal'], ofWalks(OVER), names)) === BATCH_ROWS)
    return false
  const ages = { ...names, before: ago(keepRuns) }
  yield* run(
    `
      DELETE FROM sync_walks
      WHERE ${OF_JOB} AND ${OVER} AND (updated_at < :before OR id IN (SELECT walk_id FROM sync_runs WHERE ${FOUND_NOTHING}))
        AND id NOT IN (${KEPT_WALKS})
    `,
    ages,
  )
  // By id, which the index ends with: by time, every run of three months would be read.
  yield* run(
    `
      DELETE FROM sync_runs
      WHERE id IN (
        SELECT id FROM (SELECT id, started_at FROM sync_runs WHERE ${OF_JOB} ORDER BY id LIMIT ${BATCH_ROWS}) AS oldest
        WHERE started_at < :before
        UNION
        SELECT id FROM sync_runs WHERE ${FOUND_NOTHING}
        EXCEPT
        SELECT max(id) FROM sync_runs WHERE ${OF_JOB} AND trigger <> 'refresh'
      )
    `,
    ages,
  )
  return true
}

/** Deletes a batch of the versions that ended before a time. Returns true when none is left. */
export function* pruneHistory(
  dialect: Dialect,
  { organization, collection }: Job,
  end: string,
): Rule<boolean> {
  const catalog = yield* knownCatalog(dialect, collection.name)
  if (!catalog) return true
  const pruned = yield* deleteBatch(
    tableName(collection.name, 'history'),
    [...identityOf(catalog.keys), '_ended_seq'],
    '"_organization_id" = :organization AND "_valid_to" < :end ORDER BY "_valid_to"',
    { organization: organization.id, end },
  )
  return pruned < BATCH_ROWS
}
