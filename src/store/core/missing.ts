import type { HeldBackReason, MissingCounts, MissingRule } from '../../sync/store.ts'
import type { Job } from '../../sync/types.ts'
import { tableName } from '../columns/catalog.ts'
import { knownKeys, loadColumns } from './catalogs.ts'
import { jobState, namesOf, OF_JOB } from './jobs.ts'
import { takeSeq } from './rows.ts'
import { addRemoved } from './runs.ts'
import { type Dialect, one, quoted, type Rule, run, type Values } from './sql.ts'

// `sync_missing`: live rows that trusted walks did not see. One walk makes a row `missed`, a second one `removable`; a
// `held` row stays until a person decides. When a walk or refresh sees the item again, its entry goes.

/** The pages that other walks of the job wrote after this walk's first page. */
function pagesOfOthers({ sequence, join }: Dialect): string {
  return `
    FROM sync_walks AS other
    ${join} sync_pages AS page
      ON page.walk_id = other.id
      AND page.${sequence} > (SELECT coalesce(min(${sequence}), 0) FROM sync_pages WHERE walk_id = :walkId)
    WHERE other.organization_id = :organization::text AND other.collection = :collection::text AND other.id <> :walkId
  `
}

function idsSeen(dialect: Dialect): string {
  const idsOf = (pages: string) =>
    `SELECT id.value FROM (${pages}) AS page, ${dialect.each('page.keys', 'id')}`
  return `
    ${idsOf('SELECT keys FROM sync_pages WHERE walk_id = :walkId')}
    UNION ALL
    ${idsOf(`SELECT page.keys ${pagesOfOthers(dialect)}`)}
    UNION ALL
    ${idsOf('SELECT keys FROM sync_refreshed WHERE walk_id = :walkId')}
  `
}

/** Whether other walks of the job wrote pages since this walk's first one. */
export function* isOverlapped(dialect: Dialect, job: Job, walkId: number): Rule<boolean> {
  return (yield* one(`SELECT 1 ${pagesOfOthers(dialect)} LIMIT 1`, { ...namesOf(job), walkId })) !== null
}

/** Whether no row can be missing: as many items were seen as there are rows, none was missing before, and no other walk or refresh read pages. */
export function* isNothingMissing(dialect: Dialect, job: Job, { walkId, keyed }: MissingRule): Rule<boolean> {
  if ((yield* jobState(job)).rows !== keyed) return false
  if ((yield* one(`SELECT 1 FROM sync_missing WHERE ${OF_JOB} LIMIT 1`, namesOf(job))) !== null) return false
  if (yield* isOverlapped(dialect, job, walkId)) return false
  return (yield* one('SELECT 1 FROM sync_refreshed WHERE walk_id = :walkId LIMIT 1', { walkId })) === null
}

export interface Judged {
  job: Job
  rule: MissingRule
  at: string
}

/** Notes what a trusted walk did not see. Repeating it for the same walk changes nothing. */
export function* noteMissing(dialect: Dialect, judged: Judged): Rule<void> {
  const ids = idsSeen(dialect)
  yield* forgetSeen(judged.job, ids, { walkId: judged.rule.walkId })
  yield* noteUnseen(dialect, judged, ids)
}

/** Forgets entries of rows with these ids. */
export function* forgetSeen(job: Job, ids: string, values: Values = {}): Rule<void> {
  yield* run(`DELETE FROM sync_missing WHERE ${OF_JOB} AND key IN (${ids})`, { ...namesOf(job), ...values })
  yield* countHeld(job)
}

/** Notes live rows without these ids. `range`: only rows with these numbers; the plus keeps SQLite from looking for them in an index of all rows. */
export function* noteUnseen(
  dialect: Dialect,
  { job, rule, at }: Judged,
  ids: string,
  range: { from: number; to: number } | null = null,
): Rule<void> {
  const keys = yield* knownKeys(dialect, job.collection.name)
  if (!keys) return
  const { isOtherScope, isMixed } = yield* jobState(job)
  const id = dialect.idOfRow(keys, 't')
  yield* run(
    `
      WITH seen AS ${range ? '' : 'MATERIALIZED'} (${ids})
      INSERT INTO sync_missing (organization_id, collection, key, state, missed_by, since, reason)
      SELECT :organization::text, :collection::text, ${id}, :state, :walkId, :at, :reason
      FROM ${quoted(job.collection.name)} AS t
      LEFT JOIN seen ON seen.value = ${id}
      WHERE ${range ? '+' : ''}t."_organization_id" = :organization::text AND seen.value IS NULL
        ${range ? 'AND t."_row" > :from AND t."_row" <= :to' : ''}
      ON CONFLICT (organization_id, collection, key) DO UPDATE
      SET state = 'removable', reason = CASE WHEN :isOtherScope::bigint = 1 THEN 'out_of_scope' ELSE sync_missing.reason END
      WHERE sync_missing.state = 'missed' AND sync_missing.missed_by <> excluded.missed_by
    `,
    {
      ...namesOf(job),
      ...range,
      walkId: rule.walkId,
      at,
      state: rule.atOnce ? 'removable' : 'missed',
      reason: isOtherScope || isMixed ? 'out_of_scope' : 'removed',
      isOtherScope: isOtherScope ? 1 : 0,
    },
  )
}

export function* countMissing(job: Job): Rule<MissingCounts> {
  const { rows: live, held } = yield* jobState(job)
  const counted = yield* one<{ rows: number }>(
    `SELECT count(*) AS rows FROM sync_missing WHERE ${OF_JOB} AND state = 'removable'`,
    namesOf(job),
  )
  return { removable: counted?.rows ?? 0, held, live }
}

/** Holds back all removable rows; `why` null: for the same reason as the rows that are already held. */
export function* holdMissing(job: Job, why: HeldBackReason | null): Rule<void> {
  yield* run(`UPDATE sync_missing SET state = 'held' WHERE ${OF_JOB} AND state = 'removable'`, namesOf(job))
  yield* countHeld(job, why)
}

/** The rows of a job that are to be removed: those that are held, too, since nobody asks for a part. */
const LEAVING = `${OF_JOB} AND state IN ('removable', 'held')`

/** Rows of one transaction: some tens of milliseconds. */
const REMOVED_AT_ONCE = 1000

/**
 * Removes a batch of rows while many are to be removed. Returns true when the rest can go with the end of the walk. A process that is killed
 * between two batches leaves the walk open, and whoever goes on with it judges the rows that are left: of fewer live rows, so no brake
 * holds what this walk has removed.
 */
export function* removeBatch(dialect: Dialect, job: Job, runId: number, at: string): Rule<boolean> {
  const further = yield* one(
    `SELECT 1 FROM sync_missing WHERE ${LEAVING} LIMIT 1 OFFSET ${REMOVED_AT_ONCE}`,
    namesOf(job),
  )
  if (further === null) return true
  yield* removeMissing(dialect, job, runId, at, REMOVED_AT_ONCE)
  return false
}

/** Removes rows that are removable or held: all, or the first so many. */
export function* removeMissing(
  dialect: Dialect,
  job: Job,
  runId: number,
  at: string,
  most: number | null = null,
): Rule<void> {
  const keys = yield* knownKeys(dialect, job.collection.name)
  if (!keys) return
  const { name, history } = job.collection
  const [typed, json] = [quoted(name), quoted(tableName(name, 'json'))]
  const chosen =
    most === null ? '' : ` AND key IN (SELECT key FROM sync_missing WHERE ${LEAVING} LIMIT ${most})`
  // Nobody sees this state: what is in it is gone at the end of the transaction.
  yield* run(`UPDATE sync_missing SET state = 'going' WHERE ${LEAVING}${chosen}`, namesOf(job))
  const going = `
    FROM sync_missing AS missing
    ${dialect.join} ${typed} AS t
      ON t."_organization_id" = missing.organization_id AND ${dialect.hasId(keys, 't', 'missing.key')}
  `
  const ofJob = `
    WHERE missing.organization_id = :organization::text AND missing.collection = :collection::text AND missing.state = 'going'
  `
  const { seq } = yield* takeSeq(name, at, { removals: 1 })
  if (history !== false) {
    const known = yield* loadColumns(dialect, name)
    const values = known.filter(({ role }) => role !== 'key').map((column) => column.name)
    const columns = ['_organization_id', ...keys.keyColumns, ...values].map(quoted)
    yield* run(
      `
        INSERT INTO ${quoted(tableName(name, 'history'))} (
          ${columns.join(', ')}, "_json", "_valid_from", "_valid_to", "_reason", "_seq", "_change", "_changed_fields", "_ended_seq"
        )
        SELECT
          ${columns.map((column) => `t.${column}`).join(', ')}, j."_json", t."_changed_at",
          ${dialect.later}(t."_changed_at", :at::timestamptz), missing.reason, j."_seq", j."_change", j."_changed_fields", :seq::bigint
        ${going}
        ${dialect.join} ${json} AS j ON j."_row" = t."_row"
        ${ofJob}
      `,
      { ...namesOf(job), at, seq },
    )
  }
  yield* run(`DELETE FROM ${json} WHERE "_row" IN (SELECT t."_row" ${going} ${ofJob})`, namesOf(job))
  const removed = yield* run(
    `DELETE FROM ${typed} WHERE "_row" IN (SELECT t."_row" ${going} ${ofJob})`,
    namesOf(job),
  )
  yield* run(`DELETE FROM sync_missing WHERE ${OF_JOB} AND state = 'going'`, namesOf(job))
  yield* run(`UPDATE sync_jobs SET rows = rows - :removed::bigint WHERE ${OF_JOB}`, {
    ...namesOf(job),
    removed,
  })
  yield* addRemoved(runId, removed)
}

/** Counts the held rows of a job again. */
export function countHeld(job: Job, why: HeldBackReason | null = null): Rule<number> {
  return run(
    `
      UPDATE sync_jobs
      SET
        removals_held = (SELECT count(*) FROM sync_missing WHERE ${OF_JOB} AND state = 'held'),
        held_why = coalesce(:why, held_why)
      WHERE ${OF_JOB}
    `,
    { ...namesOf(job), why },
  )
}
