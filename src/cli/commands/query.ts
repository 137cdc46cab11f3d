import { text } from 'node:stream/consumers'
import { type DatabaseOption, readPlace } from '../place.ts'
import { type OutputFormat, writeRows } from '../reading.ts'
import type { Invocation } from '../runtime.ts'

interface Options extends DatabaseOption {
  format: OutputFormat
  param: [string, string][]
}

/** `query`: one reading statement. */
export async function run(runtime: Invocation, typed: string, options: Options): Promise<number> {
  const { format, param } = options
  const place = await readPlace(runtime, options)
  runtime.dieOnSignal()
  const sql = typed === '-' ? await text(runtime.stdin()) : typed
  // A value that is missing is told before the server is asked.
  if (place.config?.postgres) (await import('../../store/postgres/query.ts')).withPlaceholders(sql, param)
  return writeRows(runtime, place, format, (mirror) => mirror.query(sql, param))
}
