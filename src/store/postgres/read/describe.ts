import {
  type ColumnSummary,
  isFew,
  pathsOf,
  SAMPLE_ROWS,
  type Sampled,
  summaryOf,
} from '../../core/describe.ts'
import type { Listed, Value } from '../../core/reading.ts'
import { runRule } from '../driver.ts'
import { quoted } from '../sql.ts'
import { type Reading, shownType } from './selection.ts'

/** Reads the whole table or view a few times. */
export async function describeColumns(sql: Reading, listed: Listed): Promise<ColumnSummary[]> {
  const columns = listed.columns.map(({ name, type }) => ({ name, type, value: comparableSql(name, type) }))
  const asked = columns.flatMap(({ value }) => [`count(${value})`, `min(${value})`, `max(${value})`])
  const extremes = await sql.arrays(`SELECT count(*), ${asked.join(', ')} FROM ${quoted(listed.name)}`)
  const [count = 0, ...extreme] = (extremes.rows[0] ?? []) as Value[]
  const rows = Number(count)
  const isExact = rows <= SAMPLE_ROWS
  const filled = columns.map((_, index) => Number(extreme[index * 3] ?? 0))
  const values = columns.map(({ value }) => value)
  const distinct = await countDistinct(sql, sampleSql(listed, isExact ? null : rows), values)
  const examples = await examplesOf(sql, listed.name, values, filled)
  const few = isExact ? new Map<string, number>() : await countFew(sql, listed.name, values, distinct)
  const paths = await runRule(sql, pathsOf(listed))
  return columns.map(({ name, type, value }, index): ColumnSummary => {
    const sample = distinct[index] ?? { sampled: 0, distinct: 0, once: 0 }
    const ours = shownType(type)
    const found = {
      column: name,
      type: ours === 'TIME' ? 'TEXT' : ours,
      filled: filled[index] ?? 0,
      sample,
      distinct: isExact ? sample.distinct : (few.get(value) ?? null),
      smallest: extreme[index * 3 + 1] ?? null,
      largest: extreme[index * 3 + 2] ?? null,
      example: examples[index] ?? null,
    }
    return summaryOf(found, rows, paths)
  })
}

/** Texts are compared by their bytes, as in a mirror in a file; a view of the user may have types that cannot be compared. */
function comparableSql(name: string, type: string): string {
  const column = quoted(name)
  const isComparable = shownType(type) !== 'TEXT' || type === 'numeric'
  if (isComparable) return column
  return type === 'text' ? `(${column} COLLATE "C")` : `(${column}::text COLLATE "C")`
}

/** `rows`: of all rows a sample; null: all of them. Of a table the same rows each time. */
function sampleSql({ name, isTable }: Listed, rows: number | null): string {
  const from = `SELECT * FROM ${quoted(name)}`
  if (rows === null) return from
  const share = SAMPLE_ROWS / rows
  return isTable
    ? `${from} TABLESAMPLE BERNOULLI (${share * 100}) REPEATABLE (1)`
    : `${from} WHERE random() < ${share}`
}

async function countDistinct(sql: Reading, sample: string, values: readonly string[]): Promise<Sampled[]> {
  const counts = values.map((value, at) => {
    const groups = `SELECT count(*) AS n FROM sample WHERE ${value} IS NOT NULL GROUP BY ${value}`
    return `SELECT ${at} AS at, count(*), coalesce(sum(n), 0), count(*) FILTER (WHERE n = 1) FROM (${groups}) AS g`
  })
  const { rows } = await sql.arrays(
    `WITH sample AS MATERIALIZED (${sample}) ${counts.join(' UNION ALL ')} ORDER BY at`,
  )
  return (rows as bigint[][]).map(([, distinct, sampled, once]) => ({
    distinct: Number(distinct),
    sampled: Number(sampled),
    once: Number(once),
  }))
}

/** How many values have the columns that seem to have few, in all rows. */
async function countFew(
  sql: Reading,
  name: string,
  values: readonly string[],
  sampled: readonly Sampled[],
): Promise<Map<string, number>> {
  const few = values.filter((_, index) => isFew(sampled[index] ?? { distinct: 0 }))
  const asked = few.map(
    (value) =>
      `(SELECT count(*) FROM (SELECT DISTINCT ${value} AS v FROM ${quoted(name)} WHERE ${value} IS NOT NULL) AS d)`,
  )
  if (few.length === 0) return new Map()
  const { rows } = await sql.arrays(`SELECT ${asked.join(', ')}`)
  return new Map(few.map((value, index) => [value, Number(rows[0]?.[index] ?? 0)]))
}

async function examplesOf(
  sql: Reading,
  name: string,
  values: readonly string[],
  filled: readonly number[],
): Promise<Value[]> {
  const asked = values.map((value, index) =>
    filled[index] === 0
      ? 'NULL'
      : `(SELECT ${value} FROM ${quoted(name)} WHERE ${value} IS NOT NULL LIMIT 1)`,
  )
  const { rows } = await sql.arrays(`SELECT ${asked.join(', ')}`)
  return (rows[0] ?? []) as Value[]
}
