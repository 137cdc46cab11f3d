import { once } from 'node:events'
import type { Writable } from 'node:stream'
import type { Value } from '../../../store/core/reading.ts'

/** Writes rows one after another, whatever store they come from. */
export interface Format<Piece extends string | Uint8Array = string> {
  /** The text before the rows. */
  begin(): Piece
  /** Empty: the row comes with a later piece. */
  row(row: readonly Value[]): Piece
  end(): Piece
}

/** Rows that come some at a time. */
export type Batches = Iterable<Iterable<readonly Value[]>> | AsyncIterable<Iterable<readonly Value[]>>

/** The text of the rows. Memory holds only one batch, or a piece of it. */
export async function* formatted(
  format: Format<string | Uint8Array>,
  batches: Batches,
): AsyncIterable<Uint8Array> {
  // With the first rows: an error in them leaves nothing written.
  let before = format.begin()
  for await (const rows of batches) {
    yield* chunked(piecesOf(before, format, rows))
    before = ''
  }
  yield* chunked([before, format.end()])
}

function* piecesOf<P extends string | Uint8Array>(
  before: P | string,
  format: Format<P>,
  rows: Iterable<readonly Value[]>,
): Iterable<P | string> {
  yield before
  for (const row of rows) yield format.row(row)
}

/** Writes piece by piece, no faster than the stream takes it, so that memory never holds a large result whole. */
export async function writeAll(stream: Writable, pieces: AsyncIterable<Uint8Array>): Promise<void> {
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

/** From here on a double does not hold every whole number: it may stand for its neighbour. */
const INEXACT = 2 ** 53

/** A REAL: as JavaScript writes it, without `.0`; from 2^53 on as SQLite does, so that it looks inexact: `9007199254740992.0`, `1.2e+19`. */
export function numberText(value: number): string {
  const size = Math.abs(value)
  if (size < INEXACT) return String(value)
  if (size === Number.POSITIVE_INFINITY) return value > 0 ? 'Inf' : '-Inf'
  return size < 1e17 ? `${value}.0` : value.toExponential().replace(/^(-?\d)e/, '$1.0e')
}
