import { type Connection, quoted } from '../sql.ts'
import { hasTable, type Listed } from './listed.ts'
import type { Value } from './rows.ts'

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

export interface JobSummary {
  organization_id: string
  organization: string
  rows: number
  as_of: string | null
  /** Undefined in a file that does not know. */
  fresh_as_of?: string | null
  coverage: string | null
}

export function summarize(connection: Connection, collection: string): CollectionSummary {
  const jobs = connection
    .prepare('SELECT * FROM sync_status WHERE collection = ? ORDER BY organization, organization_id')
    .all(collection) as JobSummary[]
  return { collection, rows: countRows(connection, collection), jobs }
}

function countRows(connection: Connection, name: string): number {
  return connection
    .prepare(`SELECT count(*) FROM ${quoted(name)}`)
    .pluck()
    .get() as number
}

/** Up to so many rows, distinct values are counted; of more rows a sample of about so many is. */
const SAMPLE_ROWS = 100_000

/** Result columns of one statement; SQLite has 2,000 at most. */
const AT_ONCE = 400

/** Reads the whole table or view a few times: some seconds for a million rows. */
export function describeColumns(connection: Connection, listed: Listed): ColumnSummary[] {
  const { name, columns } = listed
  // In memory: the disk may have no room, and this user no right to it.
  connection.pragma('temp_store = MEMORY')
  const paths = pathsOf(connection, listed)
  const extremes = columns.length > 0 ? extremesOf(connection, listed) : []
  const rows = extremes[0]?.rows ?? 0
  const isExact = rows <= SAMPLE_ROWS
  const sample = isExact ? quoted(name) : makeSample(connection, listed, rows)
  const example = connection
    .prepare(
      exampleSql(
        sample,
        columns.map((column) => column.name),
      ),
    )
    .safeIntegers()
  const examples = (columns.length > 0 ? (example.raw().get() as Value[] | undefined) : undefined) ?? []
  const summaries = columns.map(({ name: column, type }, index): ColumnSummary => {
    const { filled = 0, smallest = null, largest = null } = extremes[index] ?? {}
    const sampled = sampleDistinct(connection, sample, column)
    const counted = isExact ? sampled.distinct : countFew(connection, name, column, sampled)
    const distinct = counted ?? estimateDistinct({ filled, ...sampled })
    const path = paths.get(column) ?? null
    const nulls = rows - filled
    return {
      column,
      path,
      type,
      rows,
      nulls,
      distinct,
      isExact: counted !== null,
      smallest,
      largest,
      example: examples[index] ?? null,
    }
  })
  if (!isExact) connection.exec(`DROP TABLE ${sample}`)
  return summaries
}

function pathsOf(connection: Connection, { name, collection }: Listed): Map<string, string> {
  const ofElements = name.startsWith(`${collection}__`)
  if (ofElements && !hasTable(connection, 'sync_view_columns')) return new Map()
  const sql = ofElements
    ? 'SELECT "column", path FROM sync_view_columns WHERE view = ?'
    : 'SELECT "column", path FROM sync_columns WHERE collection = ?'
  const found = connection.prepare(sql).all(name) as { column: string; path: string }[]
  return new Map(found.map(({ column, path }) => [column, path]))
}

interface Extremes {
  rows: number
  filled: number
  smallest: Value
  largest: Value
}

function extremesOf(connection: Connection, { name, columns }: Listed): Extremes[] {
  const found: Extremes[] = []
  for (let at = 0; at < columns.length; at += AT_ONCE) {
    const some = columns.slice(at, at + AT_ONCE).map((column) => quoted(column.name))
    const asked = some.flatMap((column) => [`count(${column})`, `min(${column})`, `max(${column})`])
    const statement = connection.prepare(`SELECT count(*), ${asked.join(', ')} FROM ${quoted(name)}`)
    const [rows = 0, ...values] = statement.raw().safeIntegers().get() as Value[]
    for (let index = 0; index < some.length; index++) {
      const [filled = 0, smallest = null, largest = null] = values.slice(index * 3, index * 3 + 3)
      found.push({ rows: Number(rows), filled: Number(filled), smallest, largest })
    }
  }
  return found
}

/** Of a table the same rows each time, spread by a hash of the rowid; a view has none. */
function makeSample(connection: Connection, { name, isTable }: Listed, rows: number): string {
  const share = Math.floor((SAMPLE_ROWS / rows) * 2 ** 32)
  const chance = isTable ? '(rowid * 2654435761) & 4294967295' : 'random() & 4294967295'
  connection.exec(`
    CREATE TEMP TABLE "_sample" AS
    SELECT * FROM main.${quoted(name)} WHERE (${chance}) < ${share}
  `)
  return 'temp."_sample"'
}

function sampleDistinct(
  connection: Connection,
  sample: string,
  column: string,
): Pick<Sampled, 'sampled' | 'distinct' | 'once'> {
  const name = quoted(column)
  const groups = `SELECT count(*) AS n FROM ${sample} WHERE ${name} IS NOT NULL GROUP BY ${name}`
  const sql = `SELECT count(*), coalesce(sum(n), 0), coalesce(sum(n = 1), 0) FROM (${groups})`
  const [distinct = 0, sampled = 0, once = 0] = connection.prepare(sql).raw().get() as number[]
  return { distinct, sampled, once }
}

function countFew(
  connection: Connection,
  name: string,
  column: string,
  sampled: Pick<Sampled, 'distinct'>,
): number | null {
  if (!isFew(sampled)) return null
  return connection
    .prepare(`SELECT count(DISTINCT ${quoted(column)}) FROM main.${quoted(name)}`)
    .pluck()
    .get() as number
}

/** Up to so many different values in the sample are counted in all rows: one reading of the column, and little memory. */
const FEW = 100

/** Whether the sample has so few values of a column that all rows can be looked at. */
export function isFew({ distinct }: Pick<Sampled, 'distinct'>): boolean {
  return distinct <= FEW
}

interface Sampled {
  /** Values in all rows, and in the sample. */
  filled: number
  sampled: number
  /** Different values in the sample, and those of them that came once. */
  distinct: number
  once: number
}

/**
 * The estimator of Haas and Stokes that PostgreSQL uses: https://www.postgresql.org/docs/current/row-estimation-examples.html.
 * Exact for a column whose values all differ, and for one with few values that all come often.
 */
export function estimateDistinct({ filled, sampled, distinct, once }: Sampled): number {
  if (sampled === 0) return 0
  const estimate = (sampled * distinct) / (sampled - once + (once * sampled) / filled)
  return Math.min(filled, Math.max(distinct, Math.round(estimate)))
}

/** A value of each column, from the last rows. */
function exampleSql(sample: string, columns: readonly string[]): string {
  const last = columns.map((column) => {
    const name = quoted(column)
    return `(SELECT ${name} FROM ${sample} WHERE ${name} IS NOT NULL LIMIT 1)`
  })
  return `SELECT ${last.join(', ')}`
}
