import { addAbortSignal } from 'node:stream'
import { UsageError } from '../../errors.ts'
import { exitCodeOfStop } from '../exit-code.ts'
import { type DatabaseOption, readTarget } from '../mirror.ts'
import { type OutputFormat, runReading } from '../reading.ts'
import type { Globals, Runtime } from '../runtime.ts'

interface Options extends DatabaseOption {
  format: OutputFormat
  param: [string, string][]
}

/** `query`: one reading statement. */
export async function run(
  runtime: Runtime,
  globals: Globals,
  typed: string,
  { format, param, database: file }: Options,
): Promise<number> {
  const { database, config } = await readTarget(runtime, globals, file)
  const sql = typed === '-' ? await readSql(runtime) : typed
  if (sql === null) return exitCodeOfStop(runtime.signal)
  // `:NAME=VALUE` is understood, too. The last of several of one name counts.
  const parameters = param.map(([name, value]) => [name.replace(/^[:@$]/, ''), value] as const)
  return runReading(runtime, { database, config, work: { kind: 'query', sql, format, parameters } })
}

/** Standard input may be endless. */
const LONGEST_SQL = 1_000_000

/** The SQL on standard input; null if a signal came before its end. Throws UsageError if it is longer than LONGEST_SQL, or not UTF-8. */
async function readSql({ stdin, signal }: Runtime): Promise<string | null> {
  const pieces: Uint8Array[] = []
  let length = 0
  try {
    for await (const piece of addAbortSignal(signal, stdin()) as AsyncIterable<Uint8Array>) {
      length += piece.length
      if (length > LONGEST_SQL)
        throw new UsageError(
          'the SQL on standard input is longer than 1,000,000 bytes, the most that is read: put long values into a file or a table',
        )
      pieces.push(piece)
    }
  } catch (error) {
    if (signal.aborted) return null
    throw error
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(pieces))
  } catch {
    throw new UsageError('the SQL on standard input is no UTF-8')
  }
}
