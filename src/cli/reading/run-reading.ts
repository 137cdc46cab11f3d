import path from 'node:path'
import { JobError, UsageError } from '../../errors.ts'
import { exitCodeOfStop } from '../exit-code.ts'
import { kindOf, type MirrorPlace } from '../mirror.ts'
import { writeAll } from '../output/formats/format.ts'
import type { OutputFile } from '../output/output-file.ts'
import type { Runtime } from '../runtime.ts'
import type { TypedDuration } from '../typed-duration.ts'
import type { ExportFormat, QueryFormat, ReadingTask, ReadingWork } from './read.ts'

/** How a mirror of either kind is read. */
export interface ReadingOptions {
  task: ReadingTask
  /** Whether the output is a file, so that this process goes on after a signal. */
  isToFile: boolean
  limitMs: number | null
  /** Aborted when the time is over: whatever still reads has to end. */
  late: AbortSignal
}

export type WritePieces = (pieces: AsyncIterable<Uint8Array>) => Promise<void>

/**
 * Does what `query`, `export` or `describe` asks for, and writes what it finds. Returns the exit code. Throws UsageError, MirrorError,
 * and JobError when the time is over. `output`: null for standard output.
 */
export async function runReading(
  runtime: Runtime,
  { database, config }: MirrorPlace,
  work: ReadingWork,
  { output = null, limit = null }: { output?: OutputFile | null; limit?: TypedDuration | null } = {},
): Promise<number> {
  const { randomHex, pid, signal, sleep, stderr, stdout } = runtime
  // Only an unfinished file must be deleted after a signal. A child, or the server, notices that this process is gone.
  if (!output?.isRegular) {
    // Node reports a signal in the next turn of the event loop: one that came before is not lost.
    await runtime.yieldToEventLoop()
    runtime.dieOnSignal()
  }
  // What writes files is loaded where there is one, so that a query starts fast.
  const write: WritePieces = async (pieces) => {
    if (!output) return writeAll(stdout, pieces)
    const { writeOutput } = await import('../output/output-file.ts')
    const { newLockName } = await import('../../store/sqlite/file/lock-file.ts')
    await writeOutput(output, pieces, { lockName: newLockName(pid, randomHex), mirror: database }, signal)
  }
  const isCopy = config === null
  const configured = config?.collections.map(({ name }) => name) ?? []
  const task = { database, isCopy, configured, ...screenOf(runtime, output), work }
  const [late, done] = [new AbortController(), new AbortController()]
  if (limit)
    sleep(limit.ms, done.signal).then(
      () => late.abort(),
      () => {},
    )
  try {
    const { read } = await kindOf(config)
    const limitMs = limit?.ms ?? null
    await read(config, runtime, { task, isToFile: output !== null, limitMs, late: late.signal }, write)
    return 0
  } catch (error) {
    if (signal.aborted && output) {
      stderr.write(`stopped; ${output.shown} is as it was\n`)
      return exitCodeOfStop(signal)
    }
    // A server has the same limit, and may notice it first.
    const isServers = error instanceof JobError && error.code === 'TIMEOUT'
    if (limit && !signal.aborted && (late.signal.aborted || isServers))
      throw new JobError('TIMEOUT', `not finished after ${limit.typed} (--timeout), so it was stopped`)
    throw error
  } finally {
    done.abort()
  }
}

/** Opened by these names, standard output that is a file would be replaced (`>> report.csv`), and a socket cannot be opened. */
const STANDARD_OUTPUT = new Set(['-', '/dev/stdout', '/dev/fd/1', '/proc/self/fd/1'])

/** The file of `--output`; null without it, and for standard output. Throws UsageError for one that must not be written. */
export async function outputFor(
  { cwd }: Runtime,
  typed: string | undefined,
  { database, config }: MirrorPlace,
): Promise<OutputFile | null> {
  if (typed === undefined || STANDARD_OUTPUT.has(typed)) return null
  const { assertMayReplace, outputFile } = await import('../output/output-file.ts')
  const file = outputFile('--output', path.resolve(cwd, typed))
  assertMayReplace(file, database, config)
  return file
}

/** Whether the output is a terminal, and how wide. One that does not know its width reports 0. */
function screenOf({ stdout }: Runtime, output: OutputFile | null): Pick<ReadingTask, 'isTerminal' | 'width'> {
  const isTerminal = output === null && stdout.isTTY === true
  return { isTerminal, width: isTerminal ? stdout.columns || 80 : null }
}

/** Throws UsageError for bytes that are for no terminal. `name`: of the file that the message proposes. */
export function assertShowable(
  runtime: Runtime,
  output: OutputFile | null,
  format: QueryFormat | ExportFormat,
  name: string,
): void {
  if (format === 'parquet' && screenOf(runtime, output).isTerminal)
    throw new UsageError(`Parquet is not for a terminal; write it to a file: --output ${name}.parquet`)
}
