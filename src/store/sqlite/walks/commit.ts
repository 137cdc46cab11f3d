import type { CommitResult } from '../../../sync/store.ts'
import type { Notice } from '../../../sync/types.ts'
import { savePage, type WrittenPage } from '../../core/commit.ts'
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
  { job, changes: { upserts }, at }: WrittenPage,
  tables: CollectionTables,
): Outcome<Notice[]> {
  if (upserts.length === 0) return { result: [], notices: [] }
  const rows = tables.toRows(
    upserts.map(({ key }) => key.parts),
    upserts.map(({ value }) => value),
  )
  if (rows.changes) return rows
  runRule(connection, tables.write({ job, upserts, typed: rows.result, at }))
  return { result: tables.extendViews(rows.result), notices: rows.notices }
}
