import { sortedJson } from '../../json/value.ts'
import type {
  BeginRun,
  HeldRemovals,
  KeptRules,
  LedgerEntry,
  OpenWalk,
  Walk,
  WalkClosing,
} from '../../sync/store.ts'
import type { Job } from '../../sync/types.ts'
import { heldRemovals, namesOf, OF_JOB, saveRefresh } from './jobs.ts'
import { all, laterOf, msOf, only, type Rule, run } from './sql.ts'

// `sync_walks`, and `sync_pages`, their page ledger.

const ROWS_ADDED = `coalesce((SELECT rows_added FROM sync_jobs WHERE ${OF_JOB}), 0)`

/** The condition for what belongs to these walks of a job. */
export function ofWalks(which = '1 = 1'): string {
  return `walk_id IN (SELECT id FROM sync_walks WHERE ${OF_JOB} AND (${which}))`
}

/** The id of a job's last trusted walk; 0: there is none. */
export const LAST_TRUSTED = `coalesce((
  SELECT max(id) FROM sync_walks WHERE ${OF_JOB} AND status = 'complete' AND kind = 'full' AND _untrusted IS NULL
), 0)`

const WALK = `
  id, _origin AS origin, kind, _path AS path, filters, _first_page AS "firstPage", next_page AS "nextPage", pages, rows_seen AS "rowsSeen",
  _new_rejects AS "newRejects", _rules AS rules, started_at AS "startedAt", updated_at AS "updatedAt", _rows_added_before AS "rowsAddedBefore"
`

type WalkRow = Omit<OpenWalk & Walk, 'rules' | 'resumed' | 'startedAt' | 'updatedAt'> &
  Record<'startedAt' | 'updatedAt', string> & { rules: string; pages: number }

function walkOf({ pages, startedAt, updatedAt, rules, ...walk }: WalkRow) {
  return {
    ...walk,
    rules: JSON.parse(rules) as KeptRules,
    resumed: pages > 0,
    startedAt: msOf(startedAt),
    updatedAt: msOf(updatedAt),
  }
}

export function* openWalks(job: Job): Rule<OpenWalk[]> {
  const sql = `SELECT ${WALK} FROM sync_walks WHERE ${OF_JOB} AND status = 'open' ORDER BY id`
  return (yield* all<WalkRow>(sql, namesOf(job))).map(walkOf)
}

type WalkBegin = Pick<BeginRun, 'plan' | 'filters' | 'rules'>

export function* beginWalk(job: Job, { plan, filters, rules }: WalkBegin, at: string): Rule<Walk> {
  const { kind, firstPage, origin } = plan
  const { path, filters: configured, scope = configured } = job.collection
  const row = yield* only<WalkRow>(
    `
      INSERT INTO sync_walks (
        organization_id, collection, kind, filters, status, next_page, started_at, updated_at, _origin, _path, _scope, _first_page, _rules,
        _rows_added_before
      )
      VALUES (
        :organization, :collection, :kind, :filters, 'open', :firstPage, :at, :at, :origin, :path, :scope, :firstPage, :rules, ${ROWS_ADDED}
      )
      RETURNING ${WALK}
    `,
    {
      ...namesOf(job),
      kind,
      filters,
      at,
      origin,
      path,
      scope: sortedJson(scope),
      firstPage,
      rules: JSON.stringify(rules),
    },
  )
  return walkOf(row)
}

/**
 * Loads an open walk. One without a page begins now, as a new one would, and behind all walks that began before: its start becomes the `as_of`
 * of the list, and an earlier run may have been refused long ago.
 */
export function* resumeWalk(job: Job, walkId: number, begin: WalkBegin, at: string): Rule<Walk> {
  const row = yield* only<WalkRow>(`SELECT ${WALK} FROM sync_walks WHERE id = :walkId`, { walkId })
  if (row.pages > 0) return walkOf(row)
  const walk = yield* beginWalk(job, begin, at)
  // By an index, which leaves refreshes out.
  yield* run(
    `UPDATE sync_runs SET walk_id = :id WHERE ${OF_JOB} AND trigger <> 'refresh' AND walk_id = :walkId`,
    { ...namesOf(job), id: walk.id, walkId },
  )
  // What others read before this start is not seen since.
  yield* run('DELETE FROM sync_refreshed WHERE walk_id = :walkId', { walkId })
  yield* run('DELETE FROM sync_walks WHERE id = :walkId', { walkId })
  return walk
}

/** If the clock was set back, still the time of the walk's last page: no later page of the job carries an earlier one. */
const LATEST = laterOf('updated_at', ':at')

/** Completes or abandons a walk. What is to be removed or held back is so already. */
export function* closeWalk(
  job: Job,
  { walkId, outcome, refresh }: WalkClosing,
  at: string,
): Rule<{ heldBack: HeldRemovals | null }> {
  if (outcome === null) yield* abandonWalk(walkId, at)
  else
    yield* run(
      `
        UPDATE sync_walks
        SET
          status = 'complete', coverage = :coverage, _untrusted = :untrusted, next_page = NULL, updated_at = ${LATEST},
          finished_at = :at
        WHERE id = :walkId
      `,
      { walkId, ...outcome, at },
    )
  if (refresh) yield* saveRefresh(job, refresh)
  return { heldBack: yield* heldRemovals(job) }
}

/** Abandons a walk. Rows that it was the first to miss are no longer missed; those that another walk missed before it stay as they are. */
export function* abandonWalk(walkId: number, at: string): Rule<void> {
  const abandoned = yield* run(
    `UPDATE sync_walks SET status = 'abandoned', updated_at = ${LATEST}, finished_at = :at WHERE id = :walkId AND status = 'open'`,
    { walkId, at },
  )
  if (abandoned === 0) return
  yield* run(
    `
      DELETE FROM sync_missing
      WHERE (organization_id, collection) IN (SELECT organization_id, collection FROM sync_walks WHERE id = :walkId)
        AND state IN ('missed', 'removable') AND missed_by = :walkId
    `,
    { walkId },
  )
}

/** Up to 500 answers of a walk after one, in order. */
export function* readLedger(walkId: number, after: number): Rule<LedgerEntry[]> {
  type Row = Omit<LedgerEntry, 'ids' | 'resumed' | 'at'> & {
    keys: string
    resumed: number
    readAt: string
  }
  const rows = yield* all<Row>(
    `
      SELECT ordinal, pass, page, total, next_page AS "next", last_page AS "lastPage", items, keys, why, resumed, read_at AS "readAt"
      FROM sync_pages
      WHERE walk_id = :walkId AND ordinal > :after
      ORDER BY ordinal
      LIMIT 500
    `,
    { walkId, after },
  )
  return rows.map(({ keys, resumed, readAt, ...answer }) => ({
    ...answer,
    ids: JSON.parse(keys) as string[],
    resumed: resumed === 1,
    at: msOf(readAt),
  }))
}
