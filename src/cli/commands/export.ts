import { type DatabaseOption, readPlace } from '../mirror.ts'
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
  options: Options,
): Promise<number> {
  const place = await readPlace(runtime, globals, options)
  const { format, org: organizations } = options
  return runReading(runtime, { ...place, work: { kind: 'export', name, format, organizations } })
}
