import type { JobFreshness } from './publication.ts'
import type { Listed, Value } from './reading.ts'
import { all, one, quoted, type Rule, type StoredTime, timeOrNull } from './sql.ts'

// `describe`: what each column of a table or view holds. How that is found differs between the databases.

/** What a column holds. Nulls are no values. */
export interface ColumnSummary {
  column: string
  /** Where it stands in an item; null for a column of our own. */
  path: string | null
  type: string
  rows: number
  nulls: number
  distinct: number
  /** False for an estimate from a sample. */
  isExact: boolean
  smallest: Value
  largest: Value
  example: Value
}

/** How many rows there are, and as of when. */
export interface CollectionSummary {
  collection: string
  rows: number
  jobs: JobSummary[]
}

export interface JobSummary extends Omit<JobFreshness, 'collection' | 'last_complete_at'> {
  rows: number
  coverage: string | null
}

type SummaryLine = Omit<JobSummary, 'as_of' | 'fresh_as_of'> & {
  as_of: StoredTime | null
  fresh_as_of?: StoredTime | null
}

/** How many rows there are, and as of when. */
export function* collectionSummary(collection: string): Rule<CollectionSummary> {
  const lines = yield* all<SummaryLine>('SELECT * FROM sync_status WHERE collection = :collection', {
    collection,
  })
  const jobs = lines.map(({ organization_id, organization, rows, coverage, ...times }) => ({
    organization_id,
    organization,
    rows,
    as_of: timeOrNull(times.as_of),
    fresh_as_of: timeOrNull(times.fresh_as_of ?? null),
    coverage,
  }))
  const counted = yield* one<{ rows: number }>(`SELECT count(*) AS rows FROM ${quoted(collection)}`)
  return {
    collection,
    rows: counted?.rows ?? 0,
    // The same whatever database has sorted them.
    jobs: jobs.toSorted((left, right) => (sortKey(left) < sortKey(right) ? -1 : 1)),
  }
}

function sortKey({ organization, organization_id: id }: JobSummary): string {
  return `${organization}\0${id}`
}

/** Up to so many rows, distinct values are counted; of more rows a sample of about so many is. */
export const SAMPLE_ROWS = 100_000

/** Up to so many different values in the sample are counted in all rows: one reading of the column, and little memory. */
const FEW = 100

/** Whether the sample has so few values of a column that all rows can be looked at. */
export function isFew({ distinct }: Pick<Sampled, 'distinct'>): boolean {
  return distinct <= FEW
}

/** What a sample holds of a column. */
export interface Sampled {
  /** Values. */
  sampled: number
  /** Different ones, and those of them that came once. */
  distinct: number
  once: number
}

/** What was found of a column. */
export interface FoundColumn
  extends Pick<ColumnSummary, 'column' | 'type' | 'smallest' | 'largest' | 'example'> {
  /** Values in all rows. */
  filled: number
  sample: Sampled
  /** Different values in all rows; null: not counted. */
  distinct: number | null
}

export function summaryOf(
  { filled, sample, distinct, ...found }: FoundColumn,
  rows: number,
  paths: ReadonlyMap<string, string>,
): ColumnSummary {
  return {
    ...found,
    path: paths.get(found.column) ?? null,
    rows,
    nulls: rows - filled,
    distinct: distinct ?? estimateDistinct({ filled, ...sample }),
    isExact: distinct !== null,
  }
}

/**
 * The estimator of Haas and Stokes that PostgreSQL uses: https://www.postgresql.org/docs/current/row-estimation-examples.html.
 * Exact for a column whose values all differ, and for one with few values that all come often.
 */
export function estimateDistinct({ filled, sampled, distinct, once }: Sampled & { filled: number }): number {
  if (sampled === 0) return 0
  const estimate = (sampled * distinct) / (sampled - once + (once * sampled) / filled)
  return Math.min(filled, Math.max(distinct, Math.round(estimate)))
}

/** The paths of discovered columns. */
export function* pathsOf({ name, collection }: Listed): Rule<Map<string, string>> {
  const found = yield* all<{ column: string; path: string }>(
    name.startsWith(`${collection}__`)
      ? 'SELECT "column", path FROM sync_view_columns WHERE view = :name'
      : 'SELECT "column", path FROM sync_columns WHERE collection = :name',
    { name },
  )
  return new Map(found.map(({ column, path }) => [column, path]))
}
