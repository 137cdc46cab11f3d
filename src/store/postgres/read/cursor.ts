import type { Value } from '../../core/reading.ts'
import type { Arrays, Cursor } from '../server/pool.ts'

/** Rows that come some at a time, so that memory never holds a large result whole. */
export interface StreamedRows {
  columns: string[]
  types: string[]
  batches: AsyncIterable<Value[][]>
}

const FIRST_ROWS = 100
const FETCHED_AT_ONCE = 2000

/** Of a batch: few rows are asked for at once where they are long. */
const BATCH_CHARACTERS = 4_000_000

/** Begins to read one SELECT, VALUES or TABLE; the server takes no other statement. One at a time in a transaction. */
export async function openCursor(
  sql: Cursor,
  select: string,
  values: readonly unknown[] = [],
): Promise<StreamedRows> {
  await sql.arrays(`DECLARE "_read" NO SCROLL CURSOR FOR ${select}`, values)
  const { rows, ...head } = await fetchRows(sql, FIRST_ROWS)
  return { ...head, batches: batchesOf(sql, rows) }
}

async function* batchesOf(sql: Cursor, first: Value[][]): AsyncIterable<Value[][]> {
  for (let rows = first; rows.length > 0; ) {
    yield rows
    ;({ rows } = await fetchRows(sql, nextCount(rows)))
  }
  await sql.arrays('CLOSE "_read"')
}

async function fetchRows(sql: Cursor, count: number): Promise<Arrays & { rows: Value[][] }> {
  return (await sql.arrays(`FETCH ${count} FROM "_read"`)) as Arrays & { rows: Value[][] }
}

function nextCount(rows: readonly Value[][]): number {
  let characters = 0
  for (const row of rows) for (const value of row) characters += typeof value === 'string' ? value.length : 8
  const fitting = Math.floor(BATCH_CHARACTERS / (characters / rows.length))
  return Math.max(1, Math.min(FETCHED_AT_ONCE, fitting))
}
