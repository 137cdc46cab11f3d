import type { JobFreshness } from './publication.ts'
import { type Listed, OWN_TIME, type Value } from './reading.ts'
import {
  all,
  arrays,
  type Dialect,
  exec,
  one,
  quoted,
  type Rule,
  type StoredTime,
  timeOrNull,
} from './sql.ts'

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
  /** False for an estimate from a sample. */
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

/** The most rows whose distinct values are all counted; of more rows, a sample of about this size is. */
const SAMPLE_ROWS = 100_000

/** A column with at most this number of different values in the sample is counted in all rows: one reading of it, and little memory. */
const FEW = 100

/** Columns of one statement: of three results for each SQLite returns 2,000 at most, PostgreSQL 1,664; and SQLite joins 500 parts by UNION. */
const AT_ONCE = 400

/** Reads the whole table or view a few times: some seconds for a million rows. */
export function* describeColumns(dialect: Dialect, listed: Listed): Rule<ColumnSummary[]> {
  const paths = yield* pathsOf(dialect, listed)
  const summaries: ColumnSummary[] = []
  for (let at = 0; at < listed.columns.length; at += AT_ONCE) {
    const columns = listed.columns.slice(at, at + AT_ONCE)
    summaries.push(...(yield* describeSome(dialect, { ...listed, columns }, paths)))
  }
  return summaries
}

function* describeSome(
  dialect: Dialect,
  listed: Listed,
  paths: ReadonlyMap<string, string>,
): Rule<ColumnSummary[]> {
  const { columns } = listed
  const name = quoted(listed.name)
  const values = columns.map((column) => dialect.comparable(column))
  const extremes = values.map((value) => `count(${value}), min(${value}), max(${value})`)
  const [whole = []] = yield* arrays(`SELECT count(*), ${extremes.join(', ')} FROM ${name}`)
  const rows = Number(whole[0])
  const isExact = rows <= SAMPLE_ROWS
  const samples = yield* countSampled(dialect, listed, values, isExact ? null : SAMPLE_ROWS / rows)
  const isCounted = samples.map(({ distinct }) => !isExact && distinct <= FEW)
  const more = values.flatMap((value, index) => [
    isCounted[index]
      ? `(SELECT count(*) FROM (SELECT DISTINCT ${value} AS v FROM ${name} WHERE ${value} IS NOT NULL) AS d)`
      : 'NULL',
    Number(whole[index * 3 + 1]) > 0
      ? `(SELECT ${value} FROM ${name} WHERE ${value} IS NOT NULL LIMIT 1)`
      : 'NULL',
  ])
  const [found = []] = yield* arrays(`SELECT ${more.join(', ')}`)
  return columns.map((column, index) => {
    const [count, smallest = null, largest = null] = whole.slice(index * 3 + 1)
    const [counted = null, example = null] = found.slice(index * 2)
    const filled = Number(count)
    const sample = samples[index] ?? { distinct: 0, sampled: 0, once: 0 }
    const type = dialect.shownType(column, listed)
    return {
      column: column.name,
      path: paths.get(column.name) ?? null,
      type: type === OWN_TIME ? 'TEXT' : type,
      rows,
      nulls: rows - filled,
      distinct: Number(counted ?? (isExact ? sample.distinct : estimateDistinct({ filled, ...sample }))),
      isExact: isExact || isCounted[index] === true,
      smallest,
      largest,
      example,
    }
  })
}

/** What a sample holds of a column. */
interface Sampled {
  /** Values. */
  sampled: number
  /** Different values, and how many of them came once. */
  distinct: number
  once: number
}

/** `share`: of the rows; null: all of them. */
function* countSampled(
  dialect: Dialect,
  listed: Listed,
  values: readonly string[],
  share: number | null,
): Rule<Sampled[]> {
  const sample = dialect.sample(listed, share)
  const counts = values.map((value, at) => {
    const groups = `SELECT count(*) AS n FROM ${sample.from} WHERE ${value} IS NOT NULL GROUP BY ${value}`
    return `SELECT ${at} AS at, count(*), coalesce(sum(n), 0), count(*) FILTER (WHERE n = 1) FROM (${groups}) AS g`
  })
  yield* exec(sample.make)
  // Of rows that stand in a table, a statement for each column takes two thirds of the time.
  const texts = sample.with === '' ? counts : [`${sample.with} ${counts.join(' UNION ALL ')} ORDER BY at`]
  const found: Value[][] = []
  for (const text of texts) found.push(...(yield* arrays(text)))
  yield* exec(sample.drop)
  return found.map(([, distinct, sampled, once]) => ({
    distinct: Number(distinct),
    sampled: Number(sampled),
    once: Number(once),
  }))
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
