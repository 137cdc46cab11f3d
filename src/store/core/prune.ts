import type { Job } from '../../sync/types.ts'
import { identityOf, tableName } from '../columns/catalog.ts'
import { FOUND_NOTHING } from '../schema.ts'
import { namesOf, OF_JOB } from './jobs.ts'
import { BATCH_ROWS, deleteBatch, type Dialect, type Rule, run } from './sql.ts'
import { knownCatalog } from './tables.ts'
import { LAST_TRUSTED, ofWalks } from './walks.ts'

// Deletes what runs of a job have left and no walk needs any more.

const OVER = "status <> 'open'"

/** Tables of which only open walks need their part, each with the rest of its key. */
const OF_OPEN_WALKS = [
  ['sync_refreshed', 'key'],
  ['sync_pages', 'ordinal'],
] as const

/** The last complete full walk, and, since the last trusted one, the first of each list that was configured: they tell why rows are missing. */
const KEPT_WALKS = `
  SELECT max(id) FROM sync_walks WHERE ${OF_JOB} AND status = 'complete' AND kind = 'full' HAVING max(id) IS NOT NULL
  UNION
  SELECT min(id) FROM sync_walks WHERE ${OF_JOB} AND pages > 0 AND id >= ${LAST_TRUSTED} GROUP BY _path, _scope
`

/**
 * Deletes a batch: the page ledger of closed walks, and what was read while they were open; then closed walks and rows of `sync_runs` from before
 * this time, and those that found nothing in place of a refresh, except the last ones; and each refresh that found nothing. Returns true when
 * nothing is left.
 */
export function* pruneWalks(job: Job, before: string): Rule<boolean> {
  const names = namesOf(job)
  for (const [table, key] of OF_OPEN_WALKS)
    if ((yield* deleteBatch(table, ['walk_id', key], ofWalks(OVER), names)) === BATCH_ROWS) return false
  const ages = { ...names, before }
  yield* run(
    `
      DELETE FROM sync_walks
      WHERE ${OF_JOB} AND ${OVER} AND (updated_at < :before OR id IN (SELECT walk_id FROM sync_runs WHERE ${OF_JOB} AND ${FOUND_NOTHING}))
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
        SELECT id FROM sync_runs WHERE ${OF_JOB} AND ${FOUND_NOTHING}
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
