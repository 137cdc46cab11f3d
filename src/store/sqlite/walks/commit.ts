import type { CommitResult, Upsert } from '../../../sync/store.ts'
import type { Job, Notice } from '../../../sync/types.ts'
import { sqlitePath } from '../../columns/path.ts'
import { savePage, type WrittenPage } from '../../core/commit.ts'
import { takeSeq } from '../../core/seq.ts'
import { timeOf } from '../../core/sql.ts'
import { runRule, SQLITE } from '../driver.ts'
import type { Connection } from '../sql.ts'
import type { Outcome } from '../tables/alter.ts'
import type { CollectionTables } from '../tables/collection.ts'

/** Writes one page inside the caller's transaction; or only returns the column changes that it needs. */
export function commitPage(
  connection: Connection,
  page: WrittenPage,
  tables: CollectionTables,
): Outcome<CommitResult> {
  const saved = saveRows(connection, page, tables)
  if (saved.changes) return saved
  const counts = runRule(connection, savePage(SQLITE, page))
  return { result: { ...counts, notices: saved.result }, notices: saved.notices }
}

/** Writes new and changed rows, and the views of their arrays. Its result: notices about these views. */
function saveRows(
  connection: Connection,
  { job, changes: { upserts }, at: time }: WrittenPage,
  tables: CollectionTables,
): Outcome<Notice[]> {
  if (upserts.length === 0) return { result: [], notices: [] }
  const rows = tables.toRows(
    upserts.map(({ key }) => key.parts),
    upserts.map(({ value }) => value),
  )
  if (rows.changes) return rows
  const at = timeOf(time)
  const event = { at, seq: runRule(connection, takeSeq(job.collection.name, at)) }
  for (const [index, upsert] of upserts.entries()) {
    const { key, text, change } = upsert
    const typed = rows.result[index]
    if (!typed) continue
    if (change === 'added') tables.insert(job.organization.id, key.parts, text, typed, event)
    else tables.update(job.organization.id, key.parts, text, typed, event, keptFields(job, upsert))
  }
  return { result: tables.extendViews(rows.result, at), notices: rows.notices }
}

/** The changed fields, for the version in the history; null: none is kept. */
function keptFields({ collection }: Job, { fields = [] }: Upsert): string[] | null {
  return collection.history === false ? null : fields.map(sqlitePath)
}
