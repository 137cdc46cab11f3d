import { addAbortSignal } from 'node:stream'
import { UsageError } from '../../errors.ts'
import type { Runtime } from '../runtime.ts'

/** SQLite's own limit for a statement. */
const LONGEST = 1_000_000

/** The SQL on standard input; null if a signal came before its end. Throws UsageError if it is longer than SQLite takes, or no UTF-8. */
export async function readSql({ stdin, signal }: Runtime): Promise<string | null> {
  const pieces: Uint8Array[] = []
  let length = 0
  try {
    for await (const piece of addAbortSignal(signal, stdin()) as AsyncIterable<Uint8Array>) {
      length += piece.length
      if (length > LONGEST)
        throw new UsageError(
          'the SQL on standard input is longer than 1,000,000 bytes, the most that SQLite takes',
        )
      pieces.push(piece)
    }
  } catch (error) {
    if (signal.aborted) return null
    throw error
  }
  return decoded(Buffer.concat(pieces))
}

function decoded(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new UsageError('the SQL on standard input is no UTF-8')
  }
}
