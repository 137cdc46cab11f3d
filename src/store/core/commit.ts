import type { CommitResult, PageChanges, PageCommit } from '../../sync/store.ts'
import type { Job } from '../../sync/types.ts'
import { type LockedJob, namesOf, OF_JOB, saveRefresh, scopeOf } from './jobs.ts'
import type { Fitted } from './known-tables.ts'
import { countHeld } from './missing.ts'
import { trafficValues } from './runs.ts'
import { type Dialect, one, type Rule, run, timeOf } from './sql.ts'

/** Writes a page with its rows, and counts it. */
export function* commitPage(
  dialect: Dialect,
  { tables, typed }: Pick<Fitted, 'tables' | 'typed'>,
  job: Job,
  { changes, run: reader, at: time, answer, saved }: PageCommit,
  row: LockedJob,
): Rule<Pick<CommitResult, 'newRejects' | 'rowsAdded'>> {
  yield* tables.write(job, changes.upserts, typed, time)
  const at = timeOf(time)
  const ids = JSON.stringify(changes.keys.map(({ id }) => id))
  const added = changes.upserts.filter(({ change }) => change === 'added').length
  const newRejects = yield* saveRejects(job, changes, answer?.walk.kind ?? 'refresh', at)
  if (answer) yield* saveAnswer(answer, newRejects, at)
  else {
    yield* countAsSeen(job, ids)
    yield* run(`UPDATE sync_jobs SET refreshed_at = :at WHERE ${OF_JOB}`, { ...namesOf(job), at })
  }
  if (saved) yield* saveRefresh(job, saved)
  const counted = yield* one<{ hasMissing: number }>(COUNT_IN_RUN, {
    ...namesOf(job),
    runId: reader.id,
    items: changes.items,
    added,
    changed: changes.upserts.length - added,
    ...trafficValues(reader.traffic),
  })
  yield* countInJob(job, added, row)
  if (counted?.hasMissing !== 0) yield* findAgain(dialect, job, ids)
  return { newRejects, rowsAdded: row.rowsAdded + added }
}

const COUNT_IN_RUN = `
  UPDATE sync_runs
  SET
    pages = pages + 1,
    rows_seen = rows_seen + :items,
    rows_added = rows_added + :added,
    rows_changed = rows_changed + :changed,
    brief = CASE WHEN :added + :changed > 0 THEN 0 ELSE brief END,
    requests = :requests,
    retries = :retries,
    rate_limit_hits = :rateLimitHits,
    rate_limit_wait_ms = :rateLimitWaitMs
  WHERE id = :runId
  RETURNING CASE WHEN EXISTS (SELECT 1 FROM sync_missing WHERE ${OF_JOB}) THEN 1 ELSE 0 END AS "hasMissing"
`

/** Adds the answer to the walk and its page ledger. */
function* saveAnswer(
  { walk, entry, newToWalk, nextPage }: NonNullable<PageCommit['answer']>,
  newRejects: number,
  at: string,
): Rule<void> {
  const { ids, resumed, at: _, ...answer } = entry
  const counted = yield* run(
    `
      UPDATE sync_walks
      SET
        pages = pages + 1,
        rows_seen = rows_seen + :newToWalk,
        new_rejects = new_rejects + :newRejects,
        total = coalesce(:total, total),
        next_page = :nextPage,
        passes = :pass,
        updated_at = :at
      WHERE id = :walkId AND pages = :ordinal - 1
    `,
    {
      walkId: walk.id,
      ordinal: entry.ordinal,
      newToWalk,
      newRejects,
      total: entry.total,
      nextPage,
      pass: entry.pass,
      at,
    },
  )
  if (counted === 0)
    throw new Error(`walk ${walk.id} has already written answer ${entry.ordinal}, or lacks the one before it`)
  yield* run(
    `
      INSERT INTO sync_pages (walk_id, ordinal, pass, page, total, next_page, last_page, items, keys, why, resumed, read_at)
      VALUES (:walkId, :ordinal, :pass, :page, :total, :next, :lastPage, :items, :keys, :why, :resumed, :at)
    `,
    { ...answer, keys: JSON.stringify(ids), resumed: resumed ? 1 : 0, walkId: walk.id, at },
  )
}

/** The open full walks of the job count the items of a refresh as seen. */
function countAsSeen(job: Job, ids: string): Rule<number> {
  return run(
    `
      INSERT INTO sync_refreshed (walk_id, keys)
      SELECT id, :ids FROM sync_walks WHERE ${OF_JOB} AND status = 'open' AND kind = 'full'
    `,
    { ...namesOf(job), ids },
  )
}

/**
 * Returns how many of the rejects are new. Those that only refreshes have met are new to a full walk: one may be a row
 * that lost its key.
 */
function* saveRejects(
  job: Job,
  { page, rejects }: PageChanges,
  by: 'full' | 'partial' | 'refresh',
  at: string,
): Rule<number> {
  let count = 0
  for (const { id, reason, text } of rejects) {
    const reject = { ...namesOf(job), id, at }
    const isThis = `${OF_JOB} AND fingerprint = :id`
    const known = yield* one<{ onlyRefreshed: number }>(
      `SELECT only_refreshed AS "onlyRefreshed" FROM sync_rejects WHERE ${isThis}`,
      reject,
    )
    if (known) {
      yield* run(
        `UPDATE sync_rejects SET seen_at = :at, only_refreshed = only_refreshed * :kept WHERE ${isThis}`,
        { ...reject, kept: by === 'full' ? 0 : 1 },
      )
    } else {
      yield* run(
        `
          INSERT INTO sync_rejects (organization_id, collection, page, reason, json, seen_at, fingerprint, only_refreshed)
          VALUES (:organization, :collection, :page, :reason, :text, :at, :id, :onlyRefreshed)
        `,
        { ...reject, page, reason, text, onlyRefreshed: by === 'refresh' ? 1 : 0 },
      )
    }
    if (!known || (by === 'full' && known.onlyRefreshed === 1)) count++
  }
  return count
}

/** Counts the new rows of a page, and notes which list they came from. Most pages change neither, and then nothing is written. */
function* countInJob(job: Job, added: number, row: LockedJob): Rule<void> {
  const scope = scopeOf(job)
  const isKnown = row.path !== null
  const isMixed = row.isMixed === 1 || (isKnown && (row.path !== scope.path || row.filters !== scope.filters))
  if (added === 0 && isKnown && isMixed === (row.isMixed === 1)) return
  yield* run(
    `
      UPDATE sync_jobs
      SET
        rows = rows + :added,
        rows_added = rows_added + :added,
        scope_mixed = :isMixed,
        scope_path = coalesce(scope_path, :path),
        scope_filters = coalesce(scope_filters, :filters)
      WHERE ${OF_JOB}
    `,
    { ...namesOf(job), ...scope, added, isMixed: isMixed ? 1 : 0 },
  )
}

/** The items of a page are not missing. */
function* findAgain({ each }: Dialect, job: Job, ids: string): Rule<void> {
  const listed = `SELECT id.value FROM ${each(':ids::text', 'id')}`
  const names = namesOf(job)
  const found = yield* run(`DELETE FROM sync_missing WHERE ${OF_JOB} AND key IN (${listed})`, {
    ...names,
    ids,
  })
  if (found > 0) yield* countHeld(job)
}
