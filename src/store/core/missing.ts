import type { HeldBackReason, MissingCounts, MissingRule } from '../../sync/store.ts'
import type { Job } from '../../sync/types.ts'
import { tableName } from '../columns/catalog.ts'
import { jobState, namesOf, OF_JOB } from './jobs.ts'
import { takeSeq } from './rows.ts'
import { type Dialect, type Keys, one, quoted, type Rule, run, type Values } from './sql.ts'
import { loadColumns } from './tables.ts'

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

/** Notes what a trusted walk did not see. Repeating it for the same walk changes nothing. `keys`: null without tables. */
export function* noteMissing(dialect: Dialect, keys: Keys | null, judged: Judged): Rule<void> {
  const ids = idsSeen(dialect)
  yield* forgetSeen(judged.job, ids, { walkId: judged.rule.walkId })
  if (keys) yield* noteUnseen(dialect, keys, judged, ids)
}

/** Forgets entries of rows with these ids. */
export function* forgetSeen(job: Job, ids: string, values: Values = {}): Rule<void> {
  yield* run(`DELETE FROM sync_missing WHERE ${OF_JOB} AND key IN (${ids})`, { ...namesOf(job), ...values })
  yield* countHeld(job)
}

/** Notes live rows without these ids. `range`: only rows with these numbers; the plus keeps SQLite from looking for them in an index of all rows. */
export function* noteUnseen(
  dialect: Dialect,
  keys: Keys,
  { job, rule, at }: Judged,
  ids: string,
  range: { from: number; to: number } | null = null,
): Rule<void> {
  const { isOtherScope, isMixed } = yield* jobState(job)
  const id = dialect.idOfRow(keys, 'raw')
  yield* run(
    `
      WITH seen AS ${range ? '' : 'MATERIALIZED'} (${ids})
      INSERT INTO sync_missing (organization_id, collection, key, state, missed_by, since, reason)
      SELECT :organization::text, :collection::text, ${id}, :state, :walkId, :at, :reason
      FROM ${quoted(tableName(job.collection.name, 'raw'))} AS raw
      LEFT JOIN seen ON seen.value = ${id}
      WHERE ${range ? '+' : ''}raw."_organization_id" = :organization::text AND seen.value IS NULL
        ${range ? `AND raw.${dialect.rowId} > :from AND raw.${dialect.rowId} <= :to` : ''}
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

/** Removes all rows that are removable or held. Returns how many. */
export function* removeMissing(dialect: Dialect, keys: Keys | null, job: Job, at: string): Rule<number> {
  if (!keys) return 0
  const { name, history } = job.collection
  const toRemove = (table: string, further = '') => `
    FROM sync_missing AS missing
    ${dialect.join} ${table} AS stored
      ON stored."_organization_id" = missing.organization_id AND ${dialect.hasId(keys, 'stored', 'missing.key')}
    ${further}
    WHERE missing.organization_id = :organization::text AND missing.collection = :collection::text
      AND missing.state IN ('removable', 'held')
  `
  const remove = (table: string) => {
    const { rowId } = dialect
    const sql = `DELETE FROM ${table} WHERE ${rowId} IN (SELECT stored.${rowId} ${toRemove(table)})`
    return run(sql, namesOf(job))
  }
  const raw = quoted(tableName(name, 'raw'))
  if (history !== false) {
    const columns = keys.keyColumns.map(quoted)
    const known = yield* loadColumns(dialect, name)
    const values = known.filter(({ role }) => role !== 'key').map((column) => quoted(column.name))
    const former = ['"_organization_id"', ...columns]
      .map((key) => `former.${key} = stored.${key}`)
      .join(' AND ')
    yield* run(
      `
        INSERT INTO ${quoted(tableName(name, 'history'))} (
          "_organization_id", ${columns.join(', ')}, "_json", "_valid_from", "_valid_to", "_reason", "_first_seen_at",
          ${['"_valid_from_seq"', '"_valid_to_seq"', ...values].join(', ')}
        )
        SELECT
          stored."_organization_id", ${columns.map((column) => `stored.${column}`).join(', ')}, stored."_json", stored."_changed_at",
          ${dialect.later}(stored."_changed_at", :at::timestamptz), missing.reason, stored."_first_seen_at",
          ${['stored."_changed_seq"', ':seq::bigint', ...values.map((value) => `former.${value}`)].join(', ')}
        ${toRemove(raw, `LEFT JOIN ${quoted(name)} AS former ON ${former}`)}
      `,
      { ...namesOf(job), at, seq: yield* takeSeq(name, at) },
    )
  }
  yield* remove(quoted(name))
  const removed = yield* remove(raw)
  yield* run(`DELETE FROM sync_missing WHERE ${OF_JOB} AND state IN ('removable', 'held')`, namesOf(job))
  yield* run(`UPDATE sync_jobs SET rows = rows - :removed::bigint WHERE ${OF_JOB}`, {
    ...namesOf(job),
    removed,
  })
  yield* countHeld(job)
  return removed
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
