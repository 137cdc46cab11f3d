import type { ColumnType } from './columns/column.ts'
import type { Misfit } from './columns/counts.ts'

/** A column of a job whose values do not fit it, or that became empty: as of the job's last complete full walk. */
export interface ColumnTrouble {
  organization_id: string
  organization: string
  collection: string
  /** Of an array of the collection, whose elements are counted; null: the column is in the collection's table. */
  view: string | null
  column: string
  type: ColumnType
  /** Where values are that do not fit it; null if there is no such column. */
  text_column: string | null
  /** Live rows whose value is in the text column, or is an object. */
  misfits: number
  /** What one of them is. */
  misfit: Misfit | null
  /** 1: an earlier walk found values in it, and now it is empty. */
  emptied: 0 | 1
}

/** All of them, by column. Jobs that lost all rows have nothing to tell. */
export const COLUMN_TROUBLES_SQL = `
  WITH
    known AS (
      SELECT collection AS "table", "column", path, type, role FROM sync_known_columns
      UNION ALL
      SELECT view, "column", path, type, role FROM sync_view_columns
    )
  SELECT
    count.organization_id,
    organizations.name AS organization,
    job.collection,
    CASE WHEN count.collection <> job.collection THEN count.collection END AS view,
    count."column",
    known.type,
    beside."column" AS text_column,
    count.misfits,
    count.misfit,
    count.emptied
  FROM sync_column_counts AS count
  JOIN sync_jobs AS job
    ON job.organization_id = count.organization_id
    AND job.collection || '__' = substr(count.collection || '__', 1, length(job.collection) + 2)
  JOIN organizations ON organizations.id = count.organization_id
  JOIN known ON known."table" = count.collection AND known."column" = count."column"
  LEFT JOIN known AS beside
    ON beside."table" = known."table" AND beside.path = known.path AND beside.role = 'text'
  WHERE (count.misfits > 0 OR count.emptied = 1) AND job.rows > 0
  ORDER BY count.collection, count."column", organizations.name
`
