import type { HoldReason, MissingCounts, MissingRule } from '../../../sync/store.ts'
import type { Job } from '../../../sync/types.ts'
import { type Connection, castParameter, quoted } from '../sql.ts'
import { tableName } from '../tables/declarations.ts'
import { hasId, idOfRow, type KeyColumns, readKeyColumns } from '../tables/lookup.ts'
import { createSeqs } from '../tables/seq.ts'
import { createJobStore, nameOf } from './jobs.ts'

// `sync_missing`: live rows that trusted walks did not see. One walk makes a row `missed`, a second one
// `removable`; a `held` row stays until a person decides. When a walk or refresh sees the item again, its entry goes.

const ORGANIZATION = castParameter('TEXT', ':organization')
const COLLECTION = castParameter('TEXT', ':collection')
const OF_JOB = `organization_id = ${ORGANIZATION} AND collection = ${COLLECTION}`

/** The pages that other walks of the job wrote after this walk's first page. */
const PAGES_OF_OTHERS = `
  FROM sync_walks AS other
  CROSS JOIN sync_pages AS page ON page.walk_id = other.id AND page._rowid_ > :first
  WHERE other.organization_id = ${ORGANIZATION} AND other.collection = ${COLLECTION} AND other.id <> :walk
`

const IDS_SEEN = `
  SELECT id.value FROM sync_pages AS page, json_each(page.keys) AS id WHERE page.walk_id = :walk
  UNION ALL
  SELECT id.value FROM (SELECT page.keys ${PAGES_OF_OTHERS}) AS page, json_each(page.keys) AS id
  UNION ALL
  SELECT id.value FROM sync_refreshed AS page, json_each(page.keys) AS id WHERE page.walk_id = :walk
`

/** Whether other walks of the job wrote pages since this walk's first one. */
export function isOverlapped(connection: Connection, job: Job, walkId: number): boolean {
  const find = connection.prepare(`SELECT 1 ${PAGES_OF_OTHERS} LIMIT 1`)
  return find.get(ofWalk(connection, job, walkId)) !== undefined
}

/** Whether refreshes read pages while this walk was open. */
export function isRefreshed(connection: Connection, walkId: number): boolean {
  return (
    connection.prepare('SELECT 1 FROM sync_refreshed WHERE walk_id = ? LIMIT 1').get(walkId) !== undefined
  )
}

/** Row ids give the order in which pages were written, whatever the clock said. */
function ofWalk(connection: Connection, job: Job, walk: number) {
  const sql = 'SELECT coalesce(min(_rowid_), 0) FROM sync_pages WHERE walk_id = ?'
  return { ...nameOf(job), walk, first: connection.prepare(sql).pluck().get(walk) as number }
}

/** Notes what a trusted walk did not see. Repeating it for the same walk changes nothing. */
export function noteMissing(
  connection: Connection,
  { job, rule: { walkId, atOnce }, at }: { job: Job; rule: MissingRule; at: string },
): void {
  const jobs = createJobStore(connection)
  const walk = ofWalk(connection, job, walkId)
  connection.prepare(`DELETE FROM sync_missing WHERE ${OF_JOB} AND key IN (${IDS_SEEN})`).run(walk)
  countHeld(connection, job)
  const columns = readKeyColumns(connection, job)
  if (!columns) return
  const { isOtherScope, isMixed } = jobs.state(job)
  const id = idOfRow(columns, 'raw')
  connection
    .prepare(`
      INSERT INTO sync_missing (organization_id, collection, key, state, missed_by, since, reason)
      SELECT :organization, :collection, ${id}, :state, :walk, :at, :reason
      FROM ${quoted(tableName(job.collection.name, 'raw'))} AS raw
      WHERE raw."_organization_id" = ${ORGANIZATION} AND ${id} NOT IN (${IDS_SEEN})
      ON CONFLICT (organization_id, collection, key) DO UPDATE
      SET state = 'removable', reason = iif(:isOtherScope, 'out_of_scope', reason)
      WHERE state = 'missed' AND missed_by <> excluded.missed_by
    `)
    .run({
      ...walk,
      at,
      state: atOnce ? 'removable' : 'missed',
      reason: isOtherScope || isMixed ? 'out_of_scope' : 'removed',
      isOtherScope: isOtherScope ? 1 : 0,
    })
}

export function countMissing(connection: Connection, job: Job): MissingCounts {
  const { rows: live, held } = createJobStore(connection).state(job)
  const count = connection
    .prepare(`SELECT count(*) FROM sync_missing WHERE ${OF_JOB} AND state = 'removable'`)
    .pluck()
  return { removable: count.get(nameOf(job)) as number, held, live }
}

export function hasMissing(connection: Connection, job: Job): boolean {
  const has = connection.prepare(`SELECT 1 FROM sync_missing WHERE ${OF_JOB} LIMIT 1`)
  return has.get(nameOf(job)) !== undefined
}

/** Holds back all removable rows; `why` null: for the same reason as the rows that are already held. */
export function holdMissing(connection: Connection, job: Job, why: HoldReason | null): void {
  connection
    .prepare(`UPDATE sync_missing SET state = 'held' WHERE ${OF_JOB} AND state = 'removable'`)
    .run(nameOf(job))
  countHeld(connection, job, why)
}

/** Deletes the rows that an abandoned walk was the first to miss. Rows that another one missed before stay. */
export function forgetMissedBy(connection: Connection, walkId: number): void {
  connection
    .prepare(`
      DELETE FROM sync_missing
      WHERE (organization_id, collection) IN (SELECT organization_id, collection FROM sync_walks WHERE id = :walkId)
        AND state IN ('missed', 'removable') AND missed_by = :walkId
    `)
    .run({ walkId })
}

/** Removes all rows that are removable or held. Returns how many. */
export function removeMissing(connection: Connection, job: Job, at: string): number {
  const { name, history } = job.collection
  const columns = readKeyColumns(connection, job)
  if (!columns) return 0
  if (history !== false) keepVersions(connection, job, columns, at)
  removeFrom(connection, job, columns, tableName(name, 'typed'))
  const removed = removeFrom(connection, job, columns, tableName(name, 'raw'))
  connection
    .prepare(`DELETE FROM sync_missing WHERE ${OF_JOB} AND state IN ('removable', 'held')`)
    .run(nameOf(job))
  createJobStore(connection).addRows(job, -removed)
  countHeld(connection, job)
  return removed
}

function keepVersions(connection: Connection, job: Job, columns: KeyColumns, at: string): void {
  const keys = columns.names.map(quoted).join(', ')
  const stored = columns.names.map((column) => `stored.${quoted(column)}`).join(', ')
  const { name } = job.collection
  connection
    .prepare(`
      INSERT INTO ${quoted(tableName(name, 'history'))} (
        "_organization_id", ${keys}, "_json", "_valid_from", "_valid_to", "_reason", "_first_seen_at",
        "_valid_from_seq", "_valid_to_seq"
      )
      SELECT
        stored."_organization_id", ${stored}, stored."_json", stored."_changed_at",
        max(stored."_changed_at", :at), missing.reason, stored."_first_seen_at",
        stored."_changed_seq", :seq
      ${removableRows(columns, tableName(name, 'raw'))}
    `)
    .run({ ...nameOf(job), at, seq: createSeqs(connection)(name, at) })
}

function removeFrom(connection: Connection, job: Job, columns: KeyColumns, table: string): number {
  return connection
    .prepare(
      `DELETE FROM ${quoted(table)} WHERE _rowid_ IN (SELECT stored._rowid_ ${removableRows(columns, table)})`,
    )
    .run(nameOf(job)).changes
}

function removableRows(columns: KeyColumns, table: string): string {
  return `
    FROM sync_missing AS missing
    CROSS JOIN ${quoted(table)} AS stored
      ON stored."_organization_id" = missing.organization_id AND ${hasId(columns, 'stored', 'missing.key')}
    WHERE missing.organization_id = ${ORGANIZATION} AND missing.collection = ${COLLECTION}
      AND missing.state IN ('removable', 'held')
  `
}

/** Counts the held rows of a job again. */
export function countHeld(connection: Connection, job: Job, why: HoldReason | null = null): void {
  connection
    .prepare(`
      UPDATE sync_jobs
      SET
        removals_held = (SELECT count(*) FROM sync_missing WHERE ${OF_JOB} AND state = 'held'),
        held_why = coalesce(:why, held_why)
      WHERE ${OF_JOB}
    `)
    .run({ ...nameOf(job), why })
}
