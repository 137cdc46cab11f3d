import type { Job } from '../../sync/types.ts'
import { tableName } from '../columns/catalog.ts'
import { namesOf, OF_JOB } from './jobs.ts'
import { type Dialect, quoted, type Rule, run } from './sql.ts'
import { knownShape } from './tables.ts'

// Deletes what runs of a job have left and no walk needs any more.

/** For how long the pages of other walks are kept for an interrupted one: a backfill may stay open for ever. Milliseconds. */
const OVERLAP_KEPT_MS = 3 * 86_400_000

const NOT_TRUSTED = 'it was interrupted for more than three days, and the list was read meanwhile'

/** For how long refreshes that found nothing, and walks in their place, are kept. Milliseconds. */
const BRIEF_KEPT_MS = 86_400_000

/** Rows of one batch: some tens of milliseconds. */
const PRUNED_AT_ONCE = 2000

/** Superseded versions are spread over the database, each on a page of its own. */
const VERSIONS_AT_ONCE = 1000

/**
 * Deletes a batch: the page ledger of closed walks, except the last two complete full ones; closed walks and rows of `sync_runs` older
 * than `keepRuns`, the brief ones older than a day, except the last run and the last complete full walk. Returns true when nothing is left.
 * @param ago Returns the time that many milliseconds ago.
 */
export function* pruneWalks(
  dialect: Dialect,
  job: Job,
  ago: (ms: number) => string,
  keepRuns: number,
): Rule<boolean> {
  yield* run(DISTRUST, { ...namesOf(job), overlapBefore: ago(OVERLAP_KEPT_MS) })
  const ages = { ...namesOf(job), before: ago(keepRuns), briefBefore: ago(BRIEF_KEPT_MS) }
  let left = PRUNED_AT_ONCE
  for (const text of [ledgerSql(dialect), WALKS, RUNS]) {
    left -= yield* run(text, { ...ages, rows: left })
    if (left <= 0) return false
  }
  return true
}

/** Deletes a batch of the versions that ended before a time. Returns true when none is left. */
export function* pruneHistory(
  dialect: Dialect,
  { organization, collection }: Job,
  end: string,
): Rule<boolean> {
  const shape = yield* knownShape(dialect, collection.name)
  if (!shape) return true
  const history = quoted(tableName(collection.name, 'history'))
  const key = ['_organization_id', ...shape.keyColumns, '_ended_seq'].map(quoted).join(', ')
  const pruned = yield* run(
    `
      DELETE FROM ${history}
      WHERE (${key}) IN (
        SELECT ${key}
        FROM ${history}
        WHERE "_organization_id" = :organization AND "_valid_to" < :end
        ORDER BY "_valid_to"
        LIMIT ${VERSIONS_AT_ONCE}
      )
    `,
    { organization: organization.id, end },
  )
  return pruned < VERSIONS_AT_ONCE
}

const DISTRUST = `
  UPDATE sync_walks
  SET untrusted = '${NOT_TRUSTED}'
  WHERE ${OF_JOB} AND status = 'open' AND kind = 'full' AND pages > 0 AND updated_at < :overlapBefore AND untrusted IS NULL
`

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
  ) AS old
  WHERE status <> 'open' AND id NOT IN (${LAST_COMPLETE} LIMIT 1)
`

function ledgerSql({ sequence }: Dialect): string {
  // An open full walk needs all pages written since it began: their items are not missing. One that is not trusted removes nothing.
  const firstOpenPage = `
    SELECT coalesce(min(page.${sequence}), ${Number.MAX_SAFE_INTEGER})
    FROM sync_walks AS opened
    CROSS JOIN sync_pages AS page
    WHERE opened.organization_id = :organization AND opened.collection = :collection
      AND opened.status = 'open' AND opened.kind = 'full' AND opened.untrusted IS NULL
      AND page.walk_id = opened.id AND page.ordinal = 1
  `
  return `
    DELETE FROM sync_pages
    WHERE (walk_id, ordinal) IN (
      SELECT page.walk_id, page.ordinal
      FROM sync_walks
      CROSS JOIN sync_pages AS page
      WHERE ${OF_JOB} AND status <> 'open' AND page.walk_id = sync_walks.id
        AND (id NOT IN (${LAST_COMPLETE} LIMIT 2) OR id IN (${OLD_WALKS}))
        AND page.${sequence} < (${firstOpenPage})
      LIMIT :rows
    )
  `
}

// A walk goes after its page ledger, since a later walk may get the same id.
const WALKS = `
  DELETE FROM sync_walks
  WHERE id IN (${OLD_WALKS} AND NOT EXISTS (SELECT 1 FROM sync_pages WHERE walk_id = old.id) ORDER BY id LIMIT :rows)
`

const RUNS = `
  DELETE FROM sync_runs
  WHERE id IN (
    SELECT id FROM (SELECT id, started_at FROM sync_runs WHERE ${OF_JOB} ORDER BY id LIMIT :rows) AS oldest
    WHERE started_at < :before
    UNION
    SELECT id FROM sync_runs WHERE ${OF_JOB} AND brief = 1 AND started_at < :briefBefore AND status <> 'running'
    EXCEPT
    SELECT max(id) FROM sync_runs WHERE ${OF_JOB}
  )
`
