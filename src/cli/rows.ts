import { stringify } from 'csv-stringify/sync'
import type { Rows, Value } from '../mirror/reader.ts'
import { printable } from '../text.ts'
import { formatTable } from './table.ts'

/** Rows whose widths a table is laid out by; those after them are laid out by the same, a block at a time. */
const BLOCK = 1000

export function* tableText({ columns, rows }: Rows): Iterable<string> {
  let block: Value[][] = []
  let count = 0
  for (const row of rows) {
    block.push(row)
    count++
    if (block.length < BLOCK) continue
    yield formatTable(columns, block)
    block = []
  }
  if (block.length > 0 || count === 0) yield formatTable(columns, block)
}

/** A JSON array, an object a line; whole numbers exact. */
export function* jsonText({ columns, rows }: Rows): Iterable<string> {
  let separator = '[\n'
  for (const row of rows) {
    const fields = columns.map(
      (column, index) => `${JSON.stringify(column)}:${jsonValue(row[index] ?? null)}`,
    )
    yield `${separator}{${fields.join(',')}}`
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
