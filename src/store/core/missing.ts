import type { HeldBackReason, MissingCounts, MissingRule } from '../../sync/store.ts'
import type { Job } from '../../sync/types.ts'
import { tableName } from '../columns/catalog.ts'
import { isOtherScope, type LockedJob, namesOf, OF_JOB } from './jobs.ts'
import { keepVersion, takeSeq } from './rows.ts'
import { addRemoved } from './runs.ts'
import { all, type Dialect, one, quoted, type Rule, run } from './sql.ts'
import { knownShape } from './tables.ts'

// `sync_missing`: live rows that trusted walks did not see. One walk makes a row `missed`, a second one `removable`; a
// `held` row stays until a person decides. When a walk or refresh sees the item again, its entry goes.

/** Whether a trusted walk that saw as many items as there are rows misses none: no row was missing before, and nobody else has read pages since it began. */
export function* isNothingMissing(job: Job, { walkId, keyed }: MissingRule, row: LockedJob): Rule<boolean> {
  const found = yield* one(
    `
      SELECT 1 FROM sync_missing WHERE ${OF_JOB}
      UNION ALL
      SELECT 1 FROM sync_refreshed WHERE walk_id = :walkId
      LIMIT 1
    `,
    { ...namesOf(job), walkId },
  )
  return found === null && row.rows === keyed
}

/** Notes live rows that a trusted walk did not see, except those that somebody else saw meanwhile. Repeating it for the same walk changes nothing. */
export function* noteMissing(
  dialect: Dialect,
  job: Job,
  { walkId, atOnce }: MissingRule,
  unseen: readonly string[],
  at: string,
  row: LockedJob,
): Rule<void> {
  yield* run(
    `
      INSERT INTO sync_missing (organization_id, collection, key, state, missed_by, since, reason)
      SELECT :organization::text, :collection::text, id.value, :state, :walkId, :at, :reason
      FROM ${dialect.each(':ids::text', 'id')}
      WHERE id.value NOT IN (SELECT key FROM sync_refreshed WHERE walk_id = :walkId)
      ON CONFLICT (organization_id, collection, key) DO UPDATE
      SET state = 'removable', reason = CASE excluded.reason WHEN 'out_of_scope' THEN excluded.reason ELSE sync_missing.reason END
      WHERE sync_missing.state = 'missed' AND sync_missing.missed_by <> excluded.missed_by
    `,
    {
      ...namesOf(job),
      ids: JSON.stringify(unseen),
      walkId,
      at,
      state: atOnce ? 'removable' : 'missed',
      reason: isOtherScope(job, row) ? 'out_of_scope' : 'removed',
    },
  )
}

export function* countMissing(job: Job, { rows: live }: LockedJob): Rule<MissingCounts> {
  const counted = yield* all<{ state: string; rows: number }>(
    `SELECT state, count(*) AS rows FROM sync_missing WHERE ${OF_JOB} GROUP BY state`,
    namesOf(job),
  )
  const inState = (state: string) => counted.find((found) => found.state === state)?.rows ?? 0
  return { removable: inState('removable'), held: inState('held'), live }
}

/** Rows of one transaction: some tens of milliseconds. */
const ROWS_AT_ONCE = 1000

/** Holds back a batch of the removable rows; `why` null: for the same reason as the rows that are already held. Returns true when none is left. */
export function* holdMissing(job: Job, why: HeldBackReason | null): Rule<boolean> {
  const removable = `${OF_JOB} AND state = 'removable'`
  const held = yield* run(
    `
      UPDATE sync_missing SET state = 'held'
      WHERE ${OF_JOB} AND key IN (SELECT key FROM sync_missing WHERE ${removable} LIMIT ${ROWS_AT_ONCE})
    `,
    namesOf(job),
  )
  yield* run(`UPDATE sync_jobs SET held_why = coalesce(:why, held_why) WHERE ${OF_JOB}`, {
    ...namesOf(job),
    why,
  })
  return held < ROWS_AT_ONCE
}

/**
 * Removes a batch of the rows that are removable or held, since nobody asks for a part. Returns true when none is left. A process that is killed
 * after a batch leaves the walk open, and whoever goes on with it judges the rows that are left: of fewer live rows, so no brake holds what
 * this walk has removed.
 */
export function* removeMissing(dialect: Dialect, job: Job, runId: number, at: string): Rule<boolean> {
  const { name, history } = job.collection
  const shape = yield* knownShape(dialect, name)
  const leaving = `${OF_JOB} AND state IN ('removable', 'held')`
  // Nobody sees this state: what is in it is gone at the end of the transaction.
  const going = yield* run(
    `
      UPDATE sync_missing SET state = 'going'
      WHERE ${leaving} AND key IN (SELECT key FROM sync_missing WHERE ${leaving} LIMIT ${ROWS_AT_ONCE})
    `,
    namesOf(job),
  )
  if (!shape || going === 0) return true
  const [typed, json] = [quoted(name), quoted(tableName(name, 'json'))]
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
  const gone = `WHERE "_row" IN (SELECT t."_row" ${from} ${where})`
  yield* run(`DELETE FROM ${json} ${gone}`, namesOf(job))
  const removed = yield* run(`DELETE FROM ${typed} ${gone}`, namesOf(job))
  // By its key: by its state, SQLite would go through all rows of the job.
  const goneKeys = `SELECT key FROM sync_missing WHERE ${OF_JOB} AND state = 'going'`
  yield* run(`DELETE FROM sync_missing WHERE ${OF_JOB} AND key IN (${goneKeys})`, namesOf(job))
  yield* run(`UPDATE sync_jobs SET rows = rows - :removed::bigint WHERE ${OF_JOB}`, {
    ...namesOf(job),
    removed,
  })
  yield* addRemoved(runId, removed)
  return going < ROWS_AT_ONCE
}
