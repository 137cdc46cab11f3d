import type { MissingCounts, MissingRule } from '../../sync/store.ts'
import type { Job } from '../../sync/types.ts'
import { tableName } from '../columns/catalog.ts'
import { type LockedJob, namesOf, OF_JOB } from './jobs.ts'
import { deleteRows, keepVersion, takeSeq } from './rows.ts'
import { addRemoved } from './runs.ts'
import { all, BATCH_ROWS, type Dialect, only, quoted, type Rule, run } from './sql.ts'
import { knownCatalog } from './tables.ts'
import { LAST_TRUSTED } from './walks.ts'

// `sync_missing`: live rows that trusted walks did not see. One walk makes a row `missed`, a second one `removable`; a
// `held` row stays until a person decides. When a walk or refresh sees the item again, its entry goes.

/** Why rows leave that a walk did not see. */
type Reason = 'removed' | 'out_of_scope'

/**
 * Why rows that a trusted walk did not see are missing: the last trusted one, or a walk since then, has read another list, by the path and filters
 * that were configured; or they left the list. Null: none is missing, since it saw as many items as there are rows, and each of them is one, as
 * nobody else has read pages since it began.
 */
export function* reasonOfMissing(
  job: Job,
  { walkId, keyed }: MissingRule,
  { rows }: LockedJob,
): Rule<Reason | null> {
  const { isAlone, hasOther } = yield* only<Record<'isAlone' | 'hasOther', number>>(
    `
      SELECT
        NOT EXISTS (SELECT 1 FROM sync_refreshed WHERE walk_id = :walkId) AS "isAlone",
        EXISTS (
          SELECT 1 FROM sync_walks AS other
          WHERE ${OF_JOB} AND pages > 0 AND id >= ${LAST_TRUSTED} AND (_path <> walk._path OR _scope <> walk._scope)
        ) AS "hasOther"
      FROM sync_walks AS walk
      WHERE id = :walkId
    `,
    { ...namesOf(job), walkId },
  )
  if (isAlone === 1 && rows === keyed) return null
  return hasOther === 1 ? 'out_of_scope' : 'removed'
}

/** Notes live rows that a trusted walk did not see, except those that somebody else saw meanwhile. Repeating it for the same walk changes nothing. */
export function noteMissing(
  dialect: Dialect,
  job: Job,
  { walkId, atOnce }: MissingRule,
  unseen: readonly string[],
  reason: Reason,
): Rule<number> {
  return run(
    `
      INSERT INTO sync_missing (organization_id, collection, key, state, missed_by, reason)
      SELECT :organization::text, :collection::text, id.value, :state, :walkId, :reason
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
      state: atOnce ? 'removable' : 'missed',
      reason,
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

/** Holds back a batch of the removable rows. Returns true when none is left. */
export function* holdMissing(job: Job): Rule<boolean> {
  const removable = `${OF_JOB} AND state = 'removable'`
  const held = yield* run(
    `
      UPDATE sync_missing SET state = 'held'
      WHERE ${OF_JOB} AND key IN (SELECT key FROM sync_missing WHERE ${removable} LIMIT ${BATCH_ROWS})
    `,
    namesOf(job),
  )
  return held < BATCH_ROWS
}

/**
 * Removes a batch of the rows that are removable or held, since nobody asks for a part. Returns true when none is left. A process that is killed
 * after a batch leaves the walk open, and whoever goes on with it judges the rows that are left: of fewer live rows, so no brake holds what
 * this walk has removed.
 */
export function* removeMissing(dialect: Dialect, job: Job, runId: number, at: string): Rule<boolean> {
  const { name, history } = job.collection
  const names = namesOf(job)
  const catalog = yield* knownCatalog(dialect, name)
  const leaving = yield* all<{ key: string }>(
    `SELECT key FROM sync_missing WHERE ${OF_JOB} AND state IN ('removable', 'held') LIMIT ${BATCH_ROWS}`,
    names,
  )
  if (!catalog || leaving.length === 0) return true
  const values = { ...names, keys: JSON.stringify(leaving.map(({ key }) => key)) }
  const typed = quoted(name)
  const isLeaving = `t."_organization_id" = :organization::text AND ${dialect.hasId(catalog.keys, 't', 'gone.value')}`
  const rows = yield* all<{ row: number }>(
    `SELECT t."_row" AS "row" FROM ${dialect.each(':keys::text', 'gone')} CROSS JOIN ${typed} AS t WHERE ${isLeaving}`,
    values,
  )
  const { firstSeq } = yield* takeSeq(name, at, { events: leaving.length, removals: 1 })
  if (history !== false)
    yield* run(
      `
        ${keepVersion(catalog, 'missing.reason', ':firstSeq::bigint - 1 + row_number() OVER ()')}
        FROM ${dialect.each(':keys::text', 'gone')}
        CROSS JOIN sync_missing AS missing
        CROSS JOIN ${typed} AS t
        CROSS JOIN ${quoted(tableName(name, 'json'))} AS j
        WHERE missing.organization_id = :organization::text AND missing.collection = :collection::text AND missing.key = gone.value
          AND ${isLeaving} AND j."_row" = t."_row"
      `,
      { ...values, at, firstSeq },
    )
  const numbers = rows.map(({ row }) => row)
  yield* addRemoved(runId, yield* deleteRows(dialect, names, numbers))
  yield* run(
    `DELETE FROM sync_missing WHERE ${OF_JOB} AND key IN (SELECT gone.value FROM ${dialect.each(':keys::text', 'gone')})`,
    values,
  )
  return leaving.length < BATCH_ROWS
}
