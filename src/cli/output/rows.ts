import { stringify } from 'csv-stringify/sync'
import type { Rows, Value } from '../../store/sqlite/read/reader.ts'
import { printable, printableJson } from '../../text.ts'
import { type Layout, layOut, tableHead, tableRow } from './table.ts'

/** Rows that decide the layout of a table, so that a large result need not be read whole before its first line is shown. */
const SAMPLE = 1000

export function* tableText({ columns, rows }: Rows): Iterable<string> {
  const sample: Value[][] = []
  let layout: Layout | null = null
  for (const row of rows) {
    if (layout) yield tableRow(row, layout)
    else if (sample.push(row) === SAMPLE) {
      layout = layOut(columns, sample)
      yield beginning(columns, sample, layout)
    }
  }
  if (!layout) yield beginning(columns, sample, layOut(columns, sample))
}

function beginning(columns: readonly string[], rows: readonly Value[][], layout: Layout): string {
  return tableHead(columns, layout) + rows.map((row) => tableRow(row, layout)).join('')
}

/** A JSON array, an object a line; whole numbers exact. `safe`: for a terminal. */
export function* jsonText({ columns, rows }: Rows, safe: boolean): Iterable<string> {
  let separator = '[\n'
  for (const row of rows) {
    const fields = columns.map(
      (column, index) => `${JSON.stringify(column)}:${jsonValue(row[index] ?? null)}`,
    )
    const object = `{${fields.join(',')}}`
    yield separator + (safe ? printableJson(object) : object)
    separator = ',\n'
  }
  yield separator === '[\n' ? '[]\n' : '\n]\n'
}

function jsonValue(value: Value): string {
  if (typeof value === 'bigint') return String(value)
  return JSON.stringify(value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value)
}

/** `safe`: for a terminal, which control characters must not reach. */
export function* csvText({ columns, rows }: Rows, safe: boolean): Iterable<string> {
  yield csvLine(columns, safe)
  for (const row of rows) yield csvLine(row, safe)
}

function csvLine(values: readonly Value[], safe: boolean): string {
  return stringify([values.map((value) => csvValue(value, safe))])
}

function csvValue(value: Value, safe: boolean): string | number | bigint | null {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  return safe && typeof value === 'string' ? printable(value, value.length) : value
}
