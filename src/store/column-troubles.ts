import type { ColumnType } from './columns/column.ts'
import type { Misfit } from './columns/counts.ts'

/** A column of a job whose values do not fit it, or that became empty: as of the job's last complete full walk. */
export interface ColumnTrouble {
  organization_id: string
  organization: string
  collection: string
  column: string
  type: ColumnType
  /** Where values are that do not fit it; null if there is no such column. */
  text_column: string | null
  /** Live rows whose value is in the text column. */
  misfits: number
  /** What one of them is. */
  misfit: Misfit | null
  /** 1: an earlier walk found values in it, and now it is empty. */
  emptied: 0 | 1
}

/** All of them, by column. Jobs that lost all rows have nothing to tell. */
export const COLUMN_TROUBLES_SQL = `
  SELECT
    count.organization_id,
    organizations.name AS organization,
    count.collection,
    count."column",
    known.type,
    beside."column" AS text_column,
    count.misfits,
    count.misfit,
    count.emptied
  FROM sync_column_counts AS count
  JOIN sync_jobs AS job ON job.organization_id = count.organization_id AND job.collection = count.collection
  JOIN organizations ON organizations.id = count.organization_id
  JOIN sync_known_columns AS known ON known.collection = count.collection AND known."column" = count."column"
  LEFT JOIN sync_known_columns AS beside
    ON beside.collection = known.collection AND beside.path = known.path AND beside.role = 'text'
  WHERE (count.misfits > 0 OR count.emptied = 1) AND job.rows > 0
  ORDER BY count.collection, count."column", organizations.name
`
