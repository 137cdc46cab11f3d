import type { CommitResult, PageChanges, PageCommit } from '../../sync/store.ts'
import type { Job } from '../../sync/types.ts'
import { type LockedJob, namesOf, OF_JOB } from './jobs.ts'
import type { Fitted } from './known-tables.ts'
import { trafficValues } from './runs.ts'
import { type Dialect, one, only, type Rule, run, timeOf } from './sql.ts'

/** Writes a page with its rows, and counts it. */
export function* commitPage(
  dialect: Dialect,
  { tables, rows }: Pick<Fitted, 'tables' | 'rows'>,
  job: Job,
  { changes, run: reader, at: time, answer }: PageCommit,
  row: LockedJob,
): Rule<Pick<CommitResult, 'newRejects' | 'rowsAdded'>> {
  const at = timeOf(time)
  yield* tables.write(job, rows, at)
  const names = namesOf(job)
  const ids = () => JSON.stringify(changes.keys.map(({ id }) => id))
  const walkId = answer?.walk.id ?? 0
  const added = changes.upserts.filter(({ change }) => change === 'added').length
  const newRejects = yield* saveRejects(job, changes, answer?.walk.kind ?? 'refresh', at)
  if (answer) yield* saveAnswer(answer, newRejects, at)
  else yield* run(`UPDATE sync_jobs SET refreshed_at = :at WHERE ${OF_JOB}`, { ...names, at })
  const { hasMissing, hasOthers } = yield* only<Record<'hasMissing' | 'hasOthers', number>>(COUNT_IN_RUN, {
    ...names,
    runId: reader.id,
    walkId,
    items: changes.items,
    added,
    changed: changes.upserts.length - added,
    ...trafficValues(reader.traffic),
  })
  if (added > 0) yield* run(COUNT_IN_JOB, { ...names, added })
  const listed = `SELECT id.value FROM ${dialect.each(':ids::text', 'id')}`
  if (hasOthers === 1)
    yield* run(
      `
        INSERT INTO sync_refreshed (walk_id, key)
        SELECT open.id, listed.value FROM (SELECT other.id ${OTHERS}) AS open CROSS JOIN (${listed}) AS listed WHERE 1 = 1
        ON CONFLICT (walk_id, key) DO NOTHING
      `,
      { ...names, ids: ids(), walkId },
    )
  if (hasMissing === 1)
    yield* run(`DELETE FROM sync_missing WHERE ${OF_JOB} AND key IN (${listed})`, { ...names, ids: ids() })
  return { newRejects, rowsAdded: row.rowsAdded + added }
}

/** The open full walks of the job that another one reads now: they count the items of the page as seen. */
const OTHERS = `
  FROM sync_walks AS other
  WHERE ${OF_JOB} AND status = 'open' AND kind = 'full' AND other.id <> :walkId
`

const COUNT_IN_RUN = `
  UPDATE sync_runs
  SET
    pages = pages + 1,
    rows_seen = rows_seen + :items,
    rows_added = rows_added + :added,
    rows_changed = rows_changed + :changed,
    requests = :requests,
    retries = :retries,
    rate_limit_hits = :rateLimitHits,
    rate_limit_wait_ms = :rateLimitWaitMs
  WHERE id = :runId
  RETURNING
    EXISTS (SELECT 1 FROM sync_missing WHERE ${OF_JOB}) AS "hasMissing",
    EXISTS (SELECT 1 ${OTHERS}) AS "hasOthers"
`

const COUNT_IN_JOB = `UPDATE sync_jobs SET rows = rows + :added, rows_added = rows_added + :added WHERE ${OF_JOB}`

/** Adds the answer to the walk and its page ledger. */
function* saveAnswer(
  { walk, entry, newToWalk, nextPage }: NonNullable<PageCommit['answer']>,
  newRejects: number,
  at: string,
): Rule<void> {
  const { ids, resumed, at: _, ...answer } = entry
  const { ordinal, total, pass } = entry
  const counted = yield* run(
    `
      UPDATE sync_walks
      SET
        pages = pages + 1,
        rows_seen = rows_seen + :newToWalk,
        _new_rejects = _new_rejects + :newRejects,
        total = coalesce(:total, total),
        next_page = :nextPage,
        passes = :pass,
        updated_at = :at
      WHERE id = :walkId AND pages = :ordinal - 1
    `,
    { walkId: walk.id, ordinal, newToWalk, newRejects, total, nextPage, pass, at },
  )
  if (counted === 0)
    throw new Error(`walk ${walk.id} has already written answer ${ordinal}, or lacks the one before it`)
  yield* run(
    `
      INSERT INTO sync_pages (walk_id, ordinal, pass, page, total, next_page, last_page, items, keys, why, resumed, read_at)
      VALUES (:walkId, :ordinal, :pass, :page, :total, :next, :lastPage, :items, :keys, :why, :resumed, :at)
    `,
    { ...answer, keys: JSON.stringify(ids), resumed: resumed ? 1 : 0, walkId: walk.id, at },
  )
}

const REJECT = `
  INSERT INTO sync_rejects AS known (organization_id, collection, page, reason, json, seen_at, _fingerprint, _only_refreshed)
  VALUES (:organization, :collection, :page, :reason, :text, :at, :id, :isRefresh)
  ON CONFLICT (organization_id, collection, _fingerprint) DO UPDATE
  SET seen_at = excluded.seen_at, _only_refreshed = known._only_refreshed * :kept
`

/** Returns how many of the rejects are new. Those that only refreshes have met are new to a full walk: one may be a row that lost its key. */
function* saveRejects(
  job: Job,
  { page, rejects }: PageChanges,
  by: 'full' | 'partial' | 'refresh',
  at: string,
): Rule<number> {
  let count = 0
  for (const reject of rejects) {
    const names = { ...namesOf(job), id: reject.id }
    const text = `SELECT _only_refreshed AS "onlyRefreshed" FROM sync_rejects WHERE ${OF_JOB} AND _fingerprint = :id`
    const known = yield* one<{ onlyRefreshed: number }>(text, names)
    if (!known || (by === 'full' && known.onlyRefreshed === 1)) count++
    const kinds = { isRefresh: by === 'refresh' ? 1 : 0, kept: by === 'full' ? 0 : 1 }
    yield* run(REJECT, { ...names, ...reject, ...kinds, page, at })
  }
  return count
}
