import type { JobFreshness } from './publication.ts'
import { type Listed, type ListedColumn, OWN_TIME, type Value } from './reading.ts'
import { all, arrays, type Dialect, one, quoted, type Rule, type StoredTime, timeOrNull } from './sql.ts'

// `describe`: what each column of a table or view holds.

/** What a column holds. Nulls are no values. */
export interface ColumnSummary {
  column: string
  /** Where it stands in an item; null for a column of our own. */
  path: string | null
  type: string
  rows: number
  nulls: number
  distinct: number
  /** False: there are more than `distinct`. */
  isExact: boolean
  smallest: Value
  largest: Value
  example: Value
}

/** `rows`: of its table; `jobs`: as of when the rows of each list are. */
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

/** The most different values of a column that are counted, for time and memory: more are only said to be more. */
const MOST_DISTINCT = 100_000

/** Reads the whole table or view for each column: some seconds for a million rows. */
export function* describeColumns(dialect: Dialect, listed: Listed): Rule<ColumnSummary[]> {
  const paths = yield* pathsOf(dialect, listed)
  const summaries: ColumnSummary[] = []
  for (const column of listed.columns) {
    const path = paths.get(column.name) ?? null
    summaries.push(yield* describeColumn(dialect, listed, { ...column, path }))
  }
  return summaries
}

function* describeColumn(
  dialect: Dialect,
  listed: Listed,
  column: ListedColumn & Pick<ColumnSummary, 'path'>,
): Rule<ColumnSummary> {
  const name = quoted(listed.name)
  const value = dialect.comparable(column)
  const values = `FROM ${name} WHERE ${value} IS NOT NULL`
  const [found = []] = yield* arrays(`
    SELECT
      count(*), count(${value}), min(${value}), max(${value}),
      (SELECT count(*) FROM (SELECT DISTINCT ${value} ${values} LIMIT ${MOST_DISTINCT + 1}) AS d),
      (SELECT ${value} ${values} LIMIT 1)
    FROM ${name}
  `)
  const [rows, filled, smallest = null, largest = null, distinct, example = null] = found
  const type = dialect.shownType(column, listed)
  return {
    column: column.name,
    path: column.path,
    type: type === OWN_TIME ? 'TEXT' : type,
    rows: Number(rows),
    nulls: Number(rows) - Number(filled),
    distinct: Math.min(Number(distinct), MOST_DISTINCT),
    isExact: Number(distinct) <= MOST_DISTINCT,
    smallest,
    largest,
    example,
  }
}

/** The paths of discovered columns. A copy does not have those of elements. */
function* pathsOf(dialect: Dialect, { name, collection }: Listed): Rule<Map<string, string>> {
  const isOfElements = name.startsWith(`${collection}__`)
  if (isOfElements && !(yield* dialect.relationNamed(['sync_view_columns']))) return new Map()
  const found = yield* all<{ column: string; path: string }>(
    isOfElements
      ? 'SELECT "column", path FROM sync_view_columns WHERE view = :name'
      : 'SELECT "column", path FROM sync_columns WHERE collection = :name',
    { name },
  )
  return new Map(found.map(({ column, path }) => [column, path]))
}
