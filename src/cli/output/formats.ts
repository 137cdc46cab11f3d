import { once } from 'node:events'
import type { Writable } from 'node:stream'
import type { Value } from '../../store/core/reading.ts'
import { printable, printableJson } from '../../text.ts'

// How rows are written: as a table, JSON, NDJSON or CSV; Parquet in `parquet.ts`. Whole numbers are exact in all of them. `isTerminal`:
// control characters must not reach it.

export type Row = readonly Value[]

/** Rows with the names and types of their columns. They come some at a time: memory holds no large result whole. */
export interface Rows {
  columns: string[]
  /** As declared, or empty where the store does not know. */
  types: string[]
  batches: Iterable<Iterable<Row>> | AsyncIterable<Iterable<Row>>
}

/** What is written of rows, a large piece at a time. An error in the first rows leaves nothing written. */
export type Pieces = AsyncGenerator<string | Uint8Array>

/** Writes no faster than the stream takes it. */
export async function writePieces(stream: Writable, pieces: Pieces): Promise<void> {
  for await (const piece of pieces) if (!stream.write(piece)) await once(stream, 'drain')
}

/** One write a row would cost more than making the row. Characters. */
const PIECE = 64 * 1024

async function* inPieces(
  { batches }: Rows,
  head: string,
  text: (row: Row) => string,
  end = () => '',
): Pieces {
  let piece = head
  for await (const rows of batches) {
    for (const row of rows) {
      piece += text(row)
      if (piece.length < PIECE) continue
      yield piece
      piece = ''
    }
  }
  yield piece + end()
}

/**
 * The names of the columns and the rows, by RFC 4180 with line feeds. NULL is nothing, an empty text is `""`, bytes are base64.
 * Own code, since a million rows take 5 seconds here and 22 with a library, and most libraries write NULL and `""` alike.
 */
export function csv(rows: Rows, isTerminal: boolean): Pieces {
  const cell = (value: Value) => {
    if (value === null) return ''
    if (typeof value === 'string') return quotedCell(isTerminal ? printable(value, value.length) : value)
    return typeof value === 'object' ? quotedCell(base64(value)) : numberText(value)
  }
  const line = (values: Row) => `${values.map(cell).join(',')}\n`
  return inPieces(rows, line(rows.columns), line)
}

/** A byte order mark at the beginning of a text would vanish without quotes. */
const MUST_BE_QUOTED = /[",\r\n]|^$|^\ufeff/

function quotedCell(text: string): string {
  return MUST_BE_QUOTED.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}

/** A JSON object a line. */
export function ndjson(rows: Rows, isTerminal: boolean): Pieces {
  const object = objectText(rows, isTerminal)
  return inPieces(rows, '', (row) => `${object(row)}\n`)
}

/** A JSON array, an object a line. */
export function json(rows: Rows, isTerminal: boolean): Pieces {
  const object = objectText(rows, isTerminal)
  let before = '[\n'
  const text = (row: Row) => {
    const element = before + object(row)
    before = ',\n'
    return element
  }
  return inPieces(rows, '', text, () => (before === '[\n' ? '[]\n' : '\n]\n'))
}

/** Rows of one column, which holds JSON: a line each. */
export function items(rows: Rows, isTerminal: boolean): Pieces {
  return inPieces(rows, '', ([item]) => `${isTerminal ? printableJson(String(item)) : String(item)}\n`)
}

function objectText({ columns }: Rows, isTerminal: boolean): (row: Row) => string {
  const names = columns.map((column) => `${JSON.stringify(column)}:`)
  return (row) => {
    const object = `{${names.map((name, at) => name + jsonValue(row[at] ?? null)).join(',')}}`
    return isTerminal ? printableJson(object) : object
  }
}

/**
 * A REAL from 2^53 on may stand for its neighbour, so it is written as SQLite does, to look inexact: `9007199254740992.0`, `1.0e+19`.
 * All else is written as JavaScript does.
 */
function numberText(value: number | bigint): string {
  const size = typeof value === 'bigint' ? 0 : Math.abs(value)
  if (size < 2 ** 53) return String(value)
  if (size === Number.POSITIVE_INFINITY) return value > 0 ? 'Inf' : '-Inf'
  return size < 1e17
    ? `${value}.0`
    : Number(value)
        .toExponential()
        .replace(/^(-?\d)e/, '$1.0e')
}

/** An infinite number is written as 1e999, which is read back as infinite. */
function jsonValue(value: Value): string {
  if (typeof value === 'bigint' || typeof value === 'number') return numberText(value).replace('Inf', '1e999')
  return JSON.stringify(value instanceof Uint8Array ? base64(value) : value)
}

/** On a terminal longer cells are cut. Elsewhere they are whole, and wider than their column. */
const WIDEST = 60

/** Rows that decide the layout of a table. */
const SAMPLE = 1000

/** A row a line, numbers to the right, without control characters. */
export async function* table(rows: Rows, isTerminal: boolean): Pieces {
  const sample: Row[] = []
  let line: ((row: Row) => string) | null = null
  const begin = () => {
    const layout = layoutOf(rows.columns, sample, isTerminal ? WIDEST : Number.POSITIVE_INFINITY)
    ;({ line } = layout)
    return layout.headings + sample.map(line).join('')
  }
  // What is not in the sample is written as it comes.
  yield* inPieces(
    rows,
    '',
    (row) => {
      if (line) return line(row)
      return sample.push(row) === SAMPLE ? begin() : ''
    },
    () => (line ? '' : begin()),
  )
}

/** Columns as wide as their names and the cells of these rows need. */
function layoutOf(columns: readonly string[], sample: readonly Row[], longest: number) {
  const headings = columns.map((column) => printable(column, WIDEST))
  const widths = headings.map((heading, at) =>
    sample.reduce((most, row) => Math.max(most, cellText(row[at], WIDEST).length), heading.length),
  )
  const isNumeric = headings.map(
    (_, at) => sample.length > 0 && sample.every((row) => !/string|object/.test(typeof (row[at] ?? 0))),
  )
  const lineOf = (texts: readonly string[]) => {
    const padded = texts.map((text, at) =>
      isNumeric[at] ? text.padStart(widths[at] ?? 0) : text.padEnd(widths[at] ?? 0),
    )
    return `${padded.join('  ').trimEnd()}\n`
  }
  return {
    headings: lineOf(headings) + lineOf(widths.map((width) => '-'.repeat(width))),
    line: (row: Row) => lineOf(row.map((value) => cellText(value, longest))),
  }
}

function cellText(value: Value | undefined, longest: number): string {
  if (value instanceof Uint8Array) return `x'${Buffer.from(value).toString('hex').slice(0, longest)}'`
  return typeof value === 'number' ? numberText(value) : printable(String(value ?? ''), longest)
}
