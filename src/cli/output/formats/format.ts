import { once } from 'node:events'
import type { Writable } from 'node:stream'
import type { Value } from '../../../store/core/reading.ts'

/** Writes rows one after another, whatever store they come from. */
export interface Format<Row = readonly Value[], Piece extends string | Uint8Array = string> {
  /** The text before the rows. */
  begin(): Piece
  /** Empty: the row comes with a later piece. */
  row(row: Row): Piece
  end(): Piece
  /** After the end: what a reader of the output should know; null: nothing. */
  note?(): string | null
}

/** Rows that come some at a time. */
export type Batches<Row> = Iterable<Iterable<Row>> | AsyncIterable<Iterable<Row>>

type Written = string | Uint8Array

/** Gets a note for the user, which is not part of the output. */
export type Tell = (note: string) => void

/** The text of the rows. Memory holds only one batch, or a piece of it. */
export async function* formatted<Row>(
  format: Format<Row, Written>,
  batches: Batches<Row>,
  tell: Tell,
): AsyncIterable<Uint8Array> {
  let before = format.begin()
  for await (const rows of batches) {
    yield* chunked(formattedPieces(before, format, rows))
    before = ''
  }
  yield* chunked([before, format.end()])
  const note = format.note?.() ?? null
  if (note !== null) tell(note)
}

function* formattedPieces<Row>(
  before: Written,
  format: Format<Row, Written>,
  rows: Iterable<Row>,
): Iterable<Written> {
  yield before
  for (const row of rows) yield format.row(row)
}

/** Writes piece by piece, no faster than the stream takes it, so that memory never holds a large result whole. */
export async function writeAll(
  stream: Writable,
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<void> {
  for await (const piece of pieces) {
    if (!stream.write(piece)) await once(stream, 'drain')
  }
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
