import { once } from 'node:events'
import type { Writable } from 'node:stream'
import type { Rows, Value } from '../../store/core/query.ts'
import { printable, printableJson } from '../../text.ts'

// How rows are written: as a table, JSON, NDJSON or CSV; Parquet in `parquet.ts`. Whole numbers are exact in all of them.

export type Row = readonly Value[]

/** What is written of rows, a large piece at a time. An error in the first rows leaves nothing written. */
export type Pieces = AsyncGenerator<string | Uint8Array>

/** Writes no faster than the stream takes it. */
export async function writePieces(stream: Writable, pieces: Pieces): Promise<void> {
  for await (const piece of pieces) if (!stream.write(piece)) await once(stream, 'drain')
}

interface TextFormat {
  head?: string
  row: (row: Row) => string
  end?: () => string
}

/** `isTerminal`: control characters must not reach it. */
const TEXT_FORMATS: Record<string, (columns: readonly string[], isTerminal: boolean) => TextFormat> = {
  table,
  csv,
  json,
  ndjson: (columns, isTerminal) => {
    const object = objectText(columns, isTerminal)
    return { row: (row) => `${object(row)}\n` }
  },
  /** Rows of one column, which holds JSON. */
  items: (_columns, isTerminal) => ({
    row: ([item]) => `${isTerminal ? printableJson(String(item)) : String(item)}\n`,
  }),
}

/** One write a row would cost more than making the row. Characters. */
const PIECE = 64 * 1024

export async function* textPieces(format: string, rows: Rows, isTerminal: boolean): Pieces {
  const { head = '', row, end } = (TEXT_FORMATS[format] ?? table)(rows.columns, isTerminal)
  let piece = head
  for await (const batch of rows.batches) {
    for (const values of batch) {
      piece += row(values)
      if (piece.length < PIECE) continue
      yield piece
      piece = ''
    }
  }
  yield piece + (end?.() ?? '')
}

/**
 * By RFC 4180 with line feeds. NULL is nothing, an empty text is `""`, bytes are base64. Own code, since a million rows take 5 seconds here and
 * 22 with a library, and most libraries write NULL and `""` alike.
 */
function csv(columns: readonly string[], isTerminal: boolean): TextFormat {
  const cell = (value: Value) => {
    if (value === null) return ''
    if (value instanceof Uint8Array) return quotedCell(base64(value))
    if (typeof value !== 'string') return numberText(value)
    return quotedCell(isTerminal ? printable(value, value.length) : value)
  }
  const row = (values: Row) => `${values.map(cell).join(',')}\n`
  return { head: row(columns), row }
}

/** A byte order mark at the beginning of a text would vanish without quotes. */
const MUST_BE_QUOTED = /[",\r\n]|^$|^\ufeff/

function quotedCell(text: string): string {
  return MUST_BE_QUOTED.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}

/** A JSON array, an object a line. */
function json(columns: readonly string[], isTerminal: boolean): TextFormat {
  const object = objectText(columns, isTerminal)
  let before = '[\n'
  return {
    row(row) {
      const element = before + object(row)
      before = ',\n'
      return element
    },
    end: () => (before === '[\n' ? '[]\n' : '\n]\n'),
  }
}

function objectText(columns: readonly string[], isTerminal: boolean): (row: Row) => string {
  const names = columns.map((column) => `${JSON.stringify(column)}:`)
  return (row) => {
    const object = `{${names.map((name, at) => name + jsonValue(row[at] ?? null)).join(',')}}`
    return isTerminal ? printableJson(object) : object
  }
}

/**
 * A REAL from 2^53 on may stand for its neighbour, so it is written as SQLite does, to look inexact: `9007199254740992.0`, `1.0e+19`. An analyst
 * took 69093252554500000000 for the number that the API sent. All else is written as JavaScript does.
 */
function numberText(value: number | bigint): string {
  const size = typeof value === 'bigint' ? 0 : Math.abs(value)
  if (size < 2 ** 53) return String(value)
  if (size === Number.POSITIVE_INFINITY) return value > 0 ? 'Inf' : '-Inf'
  if (size < 1e17) return `${value}.0`
  return Number(value)
    .toExponential()
    .replace(/^(-?\d)e/, '$1.0e')
}

/** An infinite number is written as 1e999, which is read back as infinite: JSON has no other word for it. */
function jsonValue(value: Value): string {
  if (typeof value === 'bigint' || typeof value === 'number') return numberText(value).replace('Inf', '1e999')
  return JSON.stringify(value instanceof Uint8Array ? base64(value) : value)
}

/** On a terminal longer cells are cut. Elsewhere they are whole, and wider than their column. */
const WIDEST = 60

/** Rows that decide the layout of a table. */
const SAMPLE = 1000

/** A row a line, numbers to the right, without control characters. What is not in the sample is written as it comes. */
function table(columns: readonly string[], isTerminal: boolean): TextFormat {
  const sample: Row[] = []
  const longest = isTerminal ? WIDEST : Number.POSITIVE_INFINITY
  let line: ((row: Row) => string) | null = null
  const begin = () => {
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
    const rowLine = (row: Row) => lineOf(row.map((value) => cellText(value, longest)))
    line = rowLine
    return lineOf(headings) + lineOf(widths.map((width) => '-'.repeat(width))) + sample.map(rowLine).join('')
  }
  return {
    row(row) {
      if (line) return line(row)
      return sample.push(row) === SAMPLE ? begin() : ''
    },
    end: () => (line ? '' : begin()),
  }
}

function cellText(value: Value | undefined, longest: number): string {
  if (value instanceof Uint8Array) return `x'${Buffer.from(value).toString('hex').slice(0, longest)}'`
  return typeof value === 'number' ? numberText(value) : printable(String(value ?? ''), longest)
}
