import { once } from 'node:events'
import type { Writable } from 'node:stream'

/** Writes text piece by piece, no faster than the stream takes it, so that memory never holds a large result whole. */
export async function writeAll(stream: Writable, pieces: Iterable<string>): Promise<void> {
  for (const chunk of chunked(pieces)) {
    if (!stream.write(chunk)) await once(stream, 'drain')
  }
}

const CHUNK = 64 * 1024

/** Joins small pieces: one write a row would cost more than making the row. */
export function* chunked(pieces: Iterable<string>): Iterable<string> {
  let chunk = ''
  for (const piece of pieces) {
    chunk += piece
    if (chunk.length < CHUNK) continue
    yield chunk
    chunk = ''
  }
  if (chunk !== '') yield chunk
}
