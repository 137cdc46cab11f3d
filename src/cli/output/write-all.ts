import { once } from 'node:events'
import type { Writable } from 'node:stream'

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
export function* chunked(pieces: Iterable<string | Uint8Array>): Iterable<Uint8Array> {
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
