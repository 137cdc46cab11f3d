import { InterruptedError } from '../../errors.ts'
import type { HeldBackReason, MissingCounts, MissingRule } from '../../sync/store.ts'
import type { Job } from '../../sync/types.ts'
import { jobName } from '../../text.ts'
import { tableName } from '../columns/catalog.ts'
import { jobState, namesOf, OF_JOB } from './jobs.ts'
import { keepVersion, takeSeq } from './rows.ts'
import { addRemoved } from './runs.ts'
import { type Dialect, exec, one, quoted, type Rule, type Runner, run, type Values } from './sql.ts'
import { knownShape } from './tables.ts'

// `sync_missing`: live rows that trusted walks did not see. One walk makes a row `missed`, a second one `removable`; a
// `held` row stays until a person decides. When a walk or refresh sees the item again, its entry goes.

/** The pages that other walks of the job wrote after this walk's first page. */
function pagesOfOthers({ sequence }: Dialect): string {
  return `
    FROM sync_walks AS other
    CROSS JOIN sync_pages AS page
    WHERE other.organization_id = :organization::text AND other.collection = :collection::text AND other.id <> :walkId
      AND page.walk_id = other.id
      AND page.${sequence} > (SELECT coalesce(min(${sequence}), 0) FROM sync_pages WHERE walk_id = :walkId)
  `
}

/** The ids that this walk saw, or another walk or refresh meanwhile. */
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

/** Whether no row can be missing: as many items were seen as there are rows, none was missing before, and no other walk or refresh read pages. */
export function* isNothingMissing(dialect: Dialect, job: Job, { walkId, keyed }: MissingRule): Rule<boolean> {
  if ((yield* jobState(job)).rows !== keyed) return false
  if ((yield* one(`SELECT 1 FROM sync_missing WHERE ${OF_JOB} LIMIT 1`, namesOf(job))) !== null) return false
  const names = { ...namesOf(job), walkId }
  if ((yield* one(`SELECT 1 ${pagesOfOthers(dialect)} LIMIT 1`, names)) !== null) return false
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

function* forgetSeen(job: Job, ids: string, values: Values = {}): Rule<void> {
  yield* run(`DELETE FROM sync_missing WHERE ${OF_JOB} AND key IN (${ids})`, { ...namesOf(job), ...values })
  yield* countHeld(job)
}

/** Notes live rows without these ids. `range`: only rows with these numbers; the plus keeps SQLite from looking for them in an index of all rows. */
function* noteUnseen(
  dialect: Dialect,
  { job, rule, at }: Judged,
  ids: string,
  range: Range | null = null,
): Rule<void> {
  const shape = yield* knownShape(dialect, job.collection.name)
  if (!shape) return
  const { isOtherScope } = yield* jobState(job)
  const id = dialect.idOfRow(shape, 't')
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
      reason: isOtherScope ? 'out_of_scope' : 'removed',
      isOtherScope: isOtherScope ? 1 : 0,
    },
  )
}

/** What is gone through in one transaction: some tens of milliseconds. */
const BATCH = { rows: 20_000, pages: 100 }

/** Rows of a table, by their numbers: greater than `from`, up to `to`. */
interface Range {
  from: number
  to: number
}

/**
 * `noteMissing` of a list of many rows in a file, in batches between which the event loop turns: what the walk saw goes into a temporary table, then
 * the rows are compared with that. Only this process works on the job. A kill leaves some rows noted; the walk is open then, and whoever ends it
 * notes the others. Throws InterruptedError after the signal.
 */
export async function noteMissingInBatches(
  { dialect, reading, writing, inBatches }: Runner,
  judged: () => Judged,
  batch = BATCH,
): Promise<void> {
  const { job, rule } = judged()
  const { walkId } = rule
  if ((await reading(jobState(job))).rows <= batch.rows) return writing(() => noteMissing(dialect, judged()))

  async function inRanges(table: string, where: string, step: number, work: (range: Range) => Rule<unknown>) {
    const whole = await reading(rangeOf(table, where, walkId))
    let next = whole.from
    const isDone = await inBatches(async () => {
      const range = { from: next, to: Math.min(next + step, whole.to) }
      if (range.to > range.from) await writing(() => work(range))
      next = range.to
      return next >= whole.to
    })
    if (!isDone) throw new InterruptedError(`${jobName(job)}: stopped while missing rows were looked for`)
  }

  const seen = `temp.seen_${walkId}`
  const ids = `SELECT value FROM ${seen}`
  try {
    await writing(() => exec([`CREATE TABLE IF NOT EXISTS ${seen} (value TEXT PRIMARY KEY) WITHOUT ROWID`]))
    await inRanges('sync_pages', 'walk_id = :walkId', batch.pages, (range) =>
      run(
        `
          INSERT OR IGNORE INTO ${seen}
          SELECT id.value
          FROM sync_pages AS page, json_each(page.keys) AS id
          WHERE page._rowid_ > :from AND page._rowid_ <= :to
            AND (page.walk_id = :walkId OR page.walk_id IN (SELECT id FROM sync_walks WHERE ${OF_JOB}))
        `,
        { ...namesOf(job), walkId, ...range },
      ),
    )
    await writing(function* () {
      yield* run(
        `INSERT OR IGNORE INTO ${seen} SELECT id.value FROM sync_refreshed, json_each(keys) AS id WHERE walk_id = :walkId`,
        { walkId },
      )
      yield* forgetSeen(job, ids)
    })
    await inRanges(job.collection.name, ':walkId > 0', batch.rows, (range) =>
      noteUnseen(dialect, judged(), ids, range),
    )
  } finally {
    await writing(() => exec([`DROP TABLE IF EXISTS ${seen}`]))
  }
}

/** From the first row of which the condition is true to the last row of the table. */
function* rangeOf(table: string, where: string, walkId: number): Rule<Range> {
  const found = yield* one<Record<keyof Range, number | null>>(
    `SELECT (SELECT min(_rowid_) FROM ${quoted(table)} WHERE ${where}) - 1 AS "from", (SELECT max(_rowid_) FROM ${quoted(table)}) AS "to"`,
    { walkId },
  )
  return { from: found?.from ?? 0, to: found?.from == null ? 0 : (found.to ?? 0) }
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
  if (further !== null) yield* removeMissing(dialect, job, runId, at)
  return further === null
}

/** Removes rows that are removable or held, up to a batch. */
export function* removeMissing(dialect: Dialect, job: Job, runId: number, at: string): Rule<void> {
  const { name, history } = job.collection
  const shape = yield* knownShape(dialect, name)
  if (!shape) return
  const [typed, json] = [quoted(name), quoted(tableName(name, 'json'))]
  // Nobody sees this state: what is in it is gone at the end of the transaction.
  yield* run(
    `
      UPDATE sync_missing SET state = 'going'
      WHERE ${LEAVING} AND key IN (SELECT key FROM sync_missing WHERE ${LEAVING} LIMIT ${REMOVED_AT_ONCE})
    `,
    namesOf(job),
  )
  const from = `FROM sync_missing AS missing CROSS JOIN ${typed} AS t`
  const where = `
    WHERE missing.organization_id = :organization::text AND missing.collection = :collection::text AND missing.state = 'going'
      AND t."_organization_id" = missing.organization_id AND ${dialect.hasId(shape, 't', 'missing.key')}
  `
  const { seq } = yield* takeSeq(name, at, { removals: 1 })
  if (history !== false)
    yield* run(
      `${keepVersion(shape, 'missing.reason')} ${from} CROSS JOIN ${json} AS j ${where} AND j."_row" = t."_row"`,
      { ...namesOf(job), at, seq },
    )
  const going = `WHERE "_row" IN (SELECT t."_row" ${from} ${where})`
  yield* run(`DELETE FROM ${json} ${going}`, namesOf(job))
  const removed = yield* run(`DELETE FROM ${typed} ${going}`, namesOf(job))
  yield* run(`DELETE FROM sync_missing WHERE ${OF_JOB} AND state = 'going'`, namesOf(job))
  yield* run(`UPDATE sync_jobs SET rows = rows - :removed::bigint WHERE ${OF_JOB}`, {
    ...namesOf(job),
    removed,
  })
  yield* countHeld(job)
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
