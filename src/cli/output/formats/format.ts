import type { Value } from '../../../store/sqlite/read/rows.ts'
import { chunked } from '../write-all.ts'

/** Turns rows into what is written, one after another, whoever brings them. */
export interface Format<Row = readonly Value[], Piece extends string | Uint8Array = string> {
  /** What stands before the rows. */
  begin(): Piece
  /** Empty: the row comes with a later piece. */
  row(row: Row): Piece
  end(): Piece
}

type Written = string | Uint8Array

export function* formatted<Row, Piece extends Written>(
  format: Format<Row, Piece>,
  rows: Iterable<Row>,
): Iterable<Piece> {
  yield format.begin()
  for (const row of rows) yield format.row(row)
  yield format.end()
}

/** The same for rows that a server sends some at a time. Memory holds those alone. */
export async function* formattedAsTheyCome<Row>(
  format: Format<Row, Written>,
  batches: AsyncIterable<readonly Row[]>,
): AsyncIterable<Uint8Array> {
  let before: Written[] = [format.begin()]
  for await (const rows of batches) {
    yield* chunked(before)
    yield* chunked(piecesOf(format, rows))
    before = []
  }
  yield* chunked([...before, format.end()])
}

function* piecesOf<Row>(format: Format<Row, Written>, rows: readonly Row[]): Iterable<Written> {
  for (const row of rows) yield format.row(row)
}
