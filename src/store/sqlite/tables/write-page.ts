import type { CommitResult } from '../../../sync/store.ts'
import { type WrittenPage, writePage } from '../../core/commit.ts'
import { asOwner, type OwnJob } from '../../core/jobs.ts'
import { timeOf } from '../../core/sql.ts'
import { runRule, SQLITE } from '../driver.ts'
import type { Connection } from '../sql.ts'
import type { Outcome } from './alter.ts'
import type { CollectionTables } from './collection.ts'

/** Writes one page inside the caller's transaction; or only returns the column changes that it needs. */
export function commitPage(
  connection: Connection,
  owner: OwnJob,
  page: WrittenPage,
  open: () => CollectionTables,
): Outcome<CommitResult> {
  const { upserts } = page.changes
  const tables = open()
  const rows = tables.toRows(
    upserts.map(({ key }) => key.parts),
    upserts.map(({ value }) => value),
  )
  if (rows.changes) return rows
  const write = asOwner(SQLITE, owner, (row) => writePage(SQLITE, tables, rows.result, page, row))
  const counts = runRule(connection, write)
  return {
    result: { ...counts, notices: tables.extendViews(rows.result, timeOf(page.at)) },
    notices: rows.notices,
  }
}
