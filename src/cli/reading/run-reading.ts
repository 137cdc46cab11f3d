import { UsageError } from '../../errors.ts'
import { kindOf, type MirrorPlace } from '../mirror.ts'
import type { Runtime } from '../runtime.ts'
import type { ReadingTask } from './read.ts'

/** Does what `query` or `export` asks for, and writes what it finds to standard output. Throws UsageError and MirrorError. */
export async function runReading(
  runtime: Runtime,
  { database, config }: MirrorPlace,
  work: ReadingTask['work'],
): Promise<number> {
  const isTerminal = runtime.stdout.isTTY === true
  if (work.format === 'parquet' && isTerminal)
    throw new UsageError('Parquet is not for a terminal; write it to a file: > result.parquet')
  // Node reports a signal in the next turn of the event loop: one that came before is not lost.
  await runtime.yieldToEventLoop()
  // SQLite cannot be interrupted, but the process can be ended.
  runtime.dieOnSignal()
  const configured = config?.collections.map(({ name }) => name) ?? []
  const { read } = await kindOf(config)
  await read(config, runtime, { database, isCopy: config === null, isTerminal, configured, work })
  return 0
}
