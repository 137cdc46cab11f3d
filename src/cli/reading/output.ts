import path from 'node:path'
import type { Config } from '../../config/config.ts'
import { UsageError } from '../../errors.ts'
import { assertMayReplace, type OutputFile, outputFile } from '../output/output-file.ts'
import type { Runtime } from '../runtime.ts'
import type { ExportFormat, QueryFormat, ReadingTask } from './task.ts'

/** Opened by these names, standard output that is a file would be replaced (`>> report.csv`), and a socket cannot be opened. */
const STANDARD_OUTPUT = new Set(['-', '/dev/stdout', '/dev/fd/1', '/proc/self/fd/1'])

/** The file of `--output`; null without it, and for standard output. Throws UsageError for one that must not be written. */
export function outputFor(
  { cwd }: Runtime,
  typed: string | undefined,
  database: string,
  config: Config | null,
): OutputFile | null {
  if (typed === undefined || STANDARD_OUTPUT.has(typed)) return null
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
