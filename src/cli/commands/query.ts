import { addAbortSignal } from 'node:stream'
import { text } from 'node:stream/consumers'
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
  const { signal, stdin } = runtime
  const { database, config } = await readTarget(runtime, globals, file)
  const reading = typed === '-' ? text(addAbortSignal(signal, stdin())) : typed
  const sql = await Promise.resolve(reading).catch((error: unknown) => {
    if (!signal.aborted) throw error
    return null
  })
  if (sql === null) return exitCodeOfStop(signal)
  // `:NAME=VALUE` is understood, too. The last of several of one name counts.
  const parameters = param.map(([name, value]) => [name.replace(/^[:@$]/, ''), value] as const)
  return runReading(runtime, { database, config, work: { kind: 'query', sql, format, parameters } })
}
