import path from 'node:path'
import type { Config } from '../../config/config.ts'
import { UsageError } from '../../errors.ts'
import { exitCodeOfStop } from '../exit-code.ts'
import { kindOf } from '../mirror.ts'
import { writeAll } from '../output/formats/format.ts'
import type { OutputFile } from '../output/output-file.ts'
import type { Runtime } from '../runtime.ts'
import type { ExportFormat, QueryFormat, ReadingTask } from './read.ts'

/** A limit as it was typed, and in milliseconds. */
export interface TimeLimit {
  typed: string
  ms: number
}

export interface ReadingOptions {
  task: ReadingTask
  /** Null: standard output. */
  output: OutputFile | null
  limit?: TimeLimit | null
}

export type WritePieces = (pieces: AsyncIterable<Uint8Array>) => Promise<void>

/**
 * Does what `query`, `export` or `describe` asks for, and writes what it finds. Returns the exit code. Throws UsageError, MirrorError,
 * and JobError when the time is over. `config`: null with `--database`.
 */
export async function runReading(
  runtime: Runtime,
  config: Config | null,
  options: ReadingOptions,
): Promise<number> {
  const { newToken, pid, signal, stderr, stdout } = runtime
  const { task, output } = options
  // Only an unfinished file must be deleted after a signal. A child, or the server, notices that this process is gone.
  if (!output?.isRegular) {
    // Node tells of a signal in the loop's next turn: one that came before is not lost.
    await runtime.yieldToEventLoop()
    runtime.dieOnSignal()
  }
  // What writes files is loaded where there is one, so that a query starts fast.
  const write: WritePieces = async (pieces) => {
    if (!output) return writeAll(stdout, pieces)
    const { writeOutput } = await import('../output/output-file.ts')
    const { newLockName } = await import('../../store/sqlite/file/lock-file.ts')
    await writeOutput(output, pieces, { lockName: newLockName(pid, newToken), mirror: task.database }, signal)
  }
  try {
    const { read } = await kindOf(config)
    await read(config, runtime, options, write)
    return 0
  } catch (error) {
    if (!signal.aborted || !output) throw error
    stderr.write(`stopped; ${output.shown} is as it was\n`)
    return exitCodeOfStop(signal)
  }
}

/** Opened by these names, standard output that is a file would be replaced (`>> report.csv`), and a socket cannot be opened. */
const STANDARD_OUTPUT = new Set(['-', '/dev/stdout', '/dev/fd/1', '/proc/self/fd/1'])

/** The file of `--output`; null without it, and for standard output. Throws UsageError for one that must not be written. */
export async function outputFor(
  { cwd }: Runtime,
  typed: string | undefined,
  database: string,
  config: Config | null,
): Promise<OutputFile | null> {
  if (typed === undefined || STANDARD_OUTPUT.has(typed)) return null
  const { assertMayReplace, outputFile } = await import('../output/output-file.ts')
  const file = outputFile('--output', path.resolve(cwd, typed))
  assertMayReplace(file, database, config)
  return file
}

/** Whether the output is a terminal, and how wide. One that does not know its width reports 0. */
export function screenOf(
  { stdout }: Runtime,
  output: OutputFile | null,
): Pick<ReadingTask, 'isTerminal' | 'width'> {
  const isTerminal = output === null && stdout.isTTY === true
  return { isTerminal, width: isTerminal ? stdout.columns || 80 : null }
}

/** Throws UsageError for bytes that are for no terminal. `name`: of the file that the message proposes. */
export function assertShowable(
  format: QueryFormat | ExportFormat,
  { isTerminal }: Pick<ReadingTask, 'isTerminal'>,
  name: string,
): void {
  if (format === 'parquet' && isTerminal)
    throw new UsageError(`Parquet is not for a terminal; write it to a file: --output ${name}.parquet`)
}
