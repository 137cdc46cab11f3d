import { type DatabaseOption, readTarget } from '../mirror.ts'
import { runReading } from '../reading/run-reading.ts'
import type { Globals, Runtime } from '../runtime.ts'

interface Options extends DatabaseOption {
  json?: boolean
}

/** `describe`: what each column holds, how many rows there are and as of when. */
export async function run(
  runtime: Runtime,
  globals: Globals,
  name: string | undefined,
  options: Options,
): Promise<number> {
  const { json = false, database } = options
  const place = await readTarget(runtime, globals, database)
  return await runReading(runtime, place, { kind: 'describe', name: name ?? null, json, now: runtime.now() })
}
