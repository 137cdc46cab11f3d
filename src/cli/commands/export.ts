import { type DatabaseOption, readTarget } from '../mirror.ts'
import { type OutputFormat, runReading } from '../reading.ts'
import type { Globals, Runtime } from '../runtime.ts'

interface Options extends DatabaseOption {
  format: OutputFormat
  org: string[]
}

/** `export`: the rows of a table or view; with `ndjson` a collection's items. */
export async function run(
  runtime: Runtime,
  globals: Globals,
  name: string,
  { format, org: organizations, database: file }: Options,
): Promise<number> {
  const { database, config } = await readTarget(runtime, globals, file)
  return runReading(runtime, { database, config, work: { kind: 'export', name, format, organizations } })
}
