import { once } from 'node:events'
import type { Writable } from 'node:stream'
import type { Value } from '../../store/core/reading.ts'
import { printable, printableJson } from '../../text.ts'

// How rows are written: as a table, JSON, NDJSON or CSV; Parquet in `parquet.ts`. Whole numbers are exact in all of them. `safe`: for a
// terminal, which control characters must not reach.

type Row = readonly Value[]

/** Writes rows one after another, whatever store they come from. Parquet is bytes, all else text. */
export interface Format {
  /** Before the rows. */
  begin(): string | Uint8Array
  /** Empty: the row comes with a later piece. */
  row(row: Row): string | Uint8Array
  end(): string | Uint8Array
}

/** Rows that come some at a time. */
export type Batches = Iterable<Iterable<Row>> | AsyncIterable<Iterable<Row>>

/** Writes the rows no faster than the stream takes them: memory holds only one batch, or a piece of it. */
export async function writeRows(stream: Writable, format: Format, batches: Batches): Promise<void> {
  const write = async (pieces: Iterable<string | Uint8Array>) => {
    for (const chunk of chunked(pieces)) if (!stream.write(chunk)) await once(stream, 'drain')
  }
  // With the first rows: an error in them leaves nothing written.
  let before = format.begin()
  for await (const rows of batches) {
    await write(piecesOf(before, format, rows))
    before = ''
  }
  await write([before, format.end()])
}

function* piecesOf(before: string | Uint8Array, format: Format, rows: Iterable<Row>) {
  yield before
  for (const row of rows) yield format.row(row)
}

const CHUNK = 64 * 1024

/** Joins small pieces: one write a row would cost more than making the row. */
function* chunked(pieces: Iterable<string | Uint8Array>): Iterable<Uint8Array> {
  let chunk = ''
  for (const piece of pieces) {
    if (typeof piece === 'string') chunk += piece
    else if (piece.length > 0) yield piece
    if (chunk.length < CHUNK) continue
    yield Buffer.from(chunk)
    chunk = ''
  }
  if (chunk !== '') yield Buffer.from(chunk)
}

/** From here on a double does not hold every whole number: it may stand for its neighbour. */
const INEXACT = 2 ** 53

/** A REAL: as JavaScript writes it, without `.0`; from 2^53 on as SQLite does, so that it looks inexact: `9007199254740992.0`, `1.2e+19`. */
export function numberText(value: number): string {
  const size = Math.abs(value)
  if (size < INEXACT) return String(value)
  if (size === Number.POSITIVE_INFINITY) return value > 0 ? 'Inf' : '-Inf'
  return size < 1e17 ? `${value}.0` : value.toExponential().replace(/^(-?\d)e/, '$1.0e')
}

/**
 * The names of the columns and the rows, by RFC 4180 with line feeds. NULL is nothing, an empty text is `""`, bytes are base64.
 * Own code, since a million rows take 5 seconds here and 22 with a library, and most libraries write NULL and `""` alike.
 */
export function csvFormat(columns: readonly string[], safe: boolean): Format {
  const cell = (value: Value) => {
    if (value === null) return ''
    if (typeof value === 'string') return quotedCell(safe ? printable(value, value.length) : value)
    if (typeof value === 'number') return numberText(value)
    return typeof value === 'bigint' ? String(value) : quotedCell(base64(value))
  }
  const row = (values: Row) => `${values.map(cell).join(',')}\n`
  return { begin: () => row(columns), row, end: () => '' }
}

/** A byte order mark at the beginning of a text would vanish without quotes. */
const MUST_BE_QUOTED = /[",\r\n]|^$|^\ufeff/

function quotedCell(text: string): string {
  return MUST_BE_QUOTED.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}

/** A JSON object a line. */
export function ndjsonFormat(columns: readonly string[], safe: boolean): Format {
  const names = columns.map((column) => `${JSON.stringify(column)}:`)
  const row = (values: Row) => {
    const fields = names.map((name, at) => name + jsonValue(values[at] ?? null))
    return jsonLine(`{${fields.join(',')}}`, safe)
  }
  return { begin: () => '', row, end: () => '' }
}

/** A JSON array, an object a line. */
export function jsonFormat(columns: readonly string[], safe: boolean): Format {
  const { row } = ndjsonFormat(columns, safe)
  let separator = '[\n'
  return {
    begin: () => '',
    row: (values) => {
      const text = separator + String(row(values)).slice(0, -1)
      separator = ',\n'
      return text
    },
    end: () => (separator === '[\n' ? '[]\n' : '\n]\n'),
  }
}

/** Rows of one column, which holds JSON: a line each. */
export function itemFormat(safe: boolean): Format {
  return { begin: () => '', row: ([json]) => jsonLine(String(json), safe), end: () => '' }
}

function jsonLine(json: string, safe: boolean): string {
  return `${safe ? printableJson(json) : json}\n`
}

/** An infinite number is written as 1e999, which is read back as infinite. */
function jsonValue(value: Value): string {
  if (value === null) return 'null'
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'bigint') return String(value)
  if (typeof value !== 'number') return JSON.stringify(base64(value))
  if (Number.isFinite(value)) return numberText(value)
  return value > 0 ? '1e999' : '-1e999'
}

/** On a terminal longer cells are cut. Elsewhere they are whole, and wider than their column. */
const WIDEST = 60

/** Rows that decide the layout of a table, so that a large result need not be read whole before its first line is shown. */
const SAMPLE = 1000

/** A row a line, numbers to the right, safe for a terminal. */
export function tableFormat(columns: readonly string[], isTerminal: boolean): Format {
  const longest = isTerminal ? WIDEST : Number.POSITIVE_INFINITY
  const sample: Row[] = []
  let show: ((row: Row) => string) | null = null

  function begin(): string {
    const layout = columns.map((column, at) =>
      padding(
        column,
        sample.map((row) => row[at] ?? null),
      ),
    )
    const line = (texts: readonly string[]) => {
      const padded = layout.map((pad, at) => pad(texts[at] ?? ''))
      return `${padded.join('  ').trimEnd()}\n`
    }
    const headings = columns.map((column) => printable(column, WIDEST))
    const rules = layout.map((pad) => '-'.repeat(pad('').length))
    show = (row) => line(row.map((value) => cellText(value, longest)))
    return line(headings) + line(rules) + sample.map(show).join('')
  }

  return {
    begin: () => '',
    row: (row) => {
      if (show) return show(row)
      return sample.push(row) === SAMPLE ? begin() : ''
    },
    end: () => (show ? '' : begin()),
  }
}

/** Returns a function that makes the texts of a column as wide as its first cells need. */
function padding(column: string, cells: readonly Value[]): (text: string) => string {
  const texts = [printable(column, WIDEST), ...cells.map((cell) => cellText(cell, WIDEST))]
  const width = texts.reduce((widest, text) => Math.max(widest, text.length), 0)
  const isNumeric =
    cells.length > 0 && cells.every((cell) => !(typeof cell === 'string' || cell instanceof Uint8Array))
  return (text) => (isNumeric ? text.padStart(width) : text.padEnd(width))
}

function cellText(value: Value, longest: number): string {
  if (value === null) return ''
  if (value instanceof Uint8Array) return `x'${Buffer.from(value).toString('hex').slice(0, longest)}'`
  return typeof value === 'number' ? numberText(value) : printable(String(value), longest)
}
