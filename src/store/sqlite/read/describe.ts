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
import { type Connection, quoted } from '../sql.ts'
import { hasTable } from './selection.ts'

/** Result columns of one statement; SQLite has 2,000 at most. */
const AT_ONCE = 400

/** Reads the whole table or view a few times: some seconds for a million rows. */
export function describeColumns(connection: Connection, listed: Listed): ColumnSummary[] {
  const { name, columns } = listed
  // In memory: the disk may have no room, and this user no right to it.
  connection.pragma('temp_store = MEMORY')
  // A copy may be of an earlier version.
  const isTold = !name.startsWith(`${listed.collection}__`) || hasTable(connection, 'sync_view_columns')
  const paths = isTold ? runRule(connection, pathsOf(listed)) : new Map<string, string>()
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
    const distinct = isExact ? sampled.distinct : countFew(connection, name, column, sampled)
    const found = { column, type, filled, sample: sampled, distinct, smallest, largest }
    return summaryOf({ ...found, example: examples[index] ?? null }, rows, paths)
  })
  if (!isExact) connection.exec(`DROP TABLE ${sample}`)
  return summaries
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

function sampleDistinct(connection: Connection, sample: string, column: string): Sampled {
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

/** A value of each column, from the last rows. */
function exampleSql(sample: string, columns: readonly string[]): string {
  const last = columns.map((column) => {
    const name = quoted(column)
    return `(SELECT ${name} FROM ${sample} WHERE ${name} IS NOT NULL LIMIT 1)`
  })
  return `SELECT ${last.join(', ')}`
}
