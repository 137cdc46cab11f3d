import { type DatabaseOption, readTarget } from '../mirror.ts'
import { runReading, screenOf } from '../reading/run-reading.ts'
import type { Globals, Runtime } from '../runtime.ts'

interface DescribeOptions extends DatabaseOption {
  json?: boolean
}

/** `describe`: what each column holds, how many rows there are and as of when. */
export async function run(
  runtime: Runtime,
  globals: Globals,
  name: string | undefined,
  options: DescribeOptions,
): Promise<number> {
  const { database, config } = await readTarget(runtime, globals, options.database)
  const configured = config?.collections.map((collection) => collection.name) ?? []
  const { json = false } = options
  const work = { kind: 'describe', name: name ?? null, configured, json, now: runtime.now() } as const
  const task = { database, isCopy: config === null, ...screenOf(runtime, null), work }
  return await runReading(runtime, config, { task, output: null })
}
