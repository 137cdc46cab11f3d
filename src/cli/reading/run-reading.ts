import { type ChildProcess, fork } from 'node:child_process'
import path from 'node:path'
import { PassThrough } from 'node:stream'
import type { Config } from '../../config/config.ts'
import { JobError, MirrorError, UsageError } from '../../errors.ts'
import { newLockName } from '../../store/sqlite/file/lock-file.ts'
import { exitCodeOfStop } from '../exit-code.ts'
import { type Tell, writeAll } from '../output/formats/format.ts'
import { assertMayReplace, type OutputFile, outputFile, writeOutput } from '../output/output-file.ts'
import type { Runtime } from '../runtime.ts'
import { read } from './read.ts'
import type { ExportFormat, QueryFormat, ReadingEnd, ReadingTask } from './task.ts'

const CHILD = new URL('./reading-child.js', import.meta.url)
const THREAD = new URL(`./reading-thread${path.extname(import.meta.url)}`, import.meta.url)

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

/**
 * Reads a mirror of either kind, and writes what it finds. Returns the exit code. Throws UsageError, MirrorError, and JobError
 * when the time is over. `config`: null with `--database`.
 */
export async function runReading(
  runtime: Runtime,
  config: Config | null,
  options: ReadingOptions,
): Promise<number> {
  if (!config?.postgres) return readFile(runtime, options)
  const { readOnServer } = await import('../postgres/reading/read-on-server.ts')
  return readOnServer(config, runtime, options)
}

/**
 * In a process of its own where this one goes on after a stop, since SQLite cannot be interrupted and a process can be
 * killed.
 */
async function readFile(runtime: Runtime, { task, output, limit = null }: ReadingOptions): Promise<number> {
  const { newToken, pid, signal, stderr, stdout } = runtime
  // Only an unfinished file must be deleted after a signal. The child ends when this process does.
  if (!output?.isRegular) {
    // Node tells of a signal in the loop's next turn: one that came before is not lost.
    await runtime.yieldToEventLoop()
    runtime.dieOnSignal()
  }
  // A signal ends this process at once, so reading can be stopped here, too; that starts in half the time.
  if (!output && limit === null) {
    await writeAll(
      stdout,
      read(task, (note) => stderr.write(`${note}\n`)),
    )
    return 0
  }
  const child = fork(CHILD, [THREAD.href], {
    execArgv: [],
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  const done = new AbortController()
  const late = limit === null ? null : killLate(child, runtime, limit, done.signal)
  const pieces = outputOf(child, {
    late: late ?? (() => null),
    tell: (note) => stderr.write(`${note}\n`),
  })
  // Without its end, the pipeline below would wait for the next piece.
  const kill = () => child.kill('SIGKILL')
  signal.addEventListener('abort', kill)
  try {
    // An error shows by the end of the child, too.
    child.send(task, () => {})
    const until = { lockName: newLockName(pid, newToken), mirror: task.database }
    if (output) await writeOutput(output, pieces, until, signal)
    else await writeAll(stdout, pieces)
    return 0
  } catch (error) {
    if (!signal.aborted || !output) throw error
    stderr.write(`stopped; ${output.shown} is as it was\n`)
    return exitCodeOfStop(signal)
  } finally {
    signal.removeEventListener('abort', kill)
    done.abort()
    kill()
  }
}

/** Kills the child after this time. Returns a function that tells that this has happened. */
function killLate(
  child: ChildProcess,
  { sleep }: Runtime,
  { typed, ms }: TimeLimit,
  signal: AbortSignal,
): () => Error | null {
  let error: Error | null = null
  sleep(ms, signal).then(
    () => {
      error = new JobError('TIMEOUT', `not finished after ${typed} (--timeout), so it was stopped`)
      child.kill('SIGKILL')
    },
    () => {},
  )
  return () => error
}

/** What the child writes. Throws at its end unless it has written all. Listens from now on, so that no event is missed. */
function outputOf(
  child: ChildProcess,
  { late, tell }: { late: () => Error | null; tell: Tell },
): AsyncIterable<Uint8Array> {
  let end = null as ReadingEnd | null
  let broken: Error | null = null
  child.on('message', (message: ReadingEnd) => {
    end = message
  })
  const closed = new Promise<void>((resolve) => {
    child.once('close', () => resolve())
    child.once('error', (error) => {
      broken = error
      resolve()
    })
  })
  // At once: what nobody reads by the time the child ends, Node throws away.
  const written = child.stdout?.pipe(new PassThrough())
  async function* pieces(): AsyncIterable<Uint8Array> {
    if (written) yield* written as AsyncIterable<Uint8Array>
    await closed
    const failure = late() ?? failureOf(end, broken)
    if (failure) throw failure
    if (end?.kind === 'done') end.notes.forEach(tell)
  }
  return pieces()
}

function failureOf(end: ReadingEnd | null, broken: Error | null): Error | null {
  if (end?.kind === 'done') return null
  if (!end) {
    const why = broken ? ` (${broken.message})` : ''
    return new JobError(
      'INTERNAL',
      `the process that reads the mirror has ended before its time${why}; was it killed, or is there no memory left?`,
    )
  }
  if (end.of === 'usage') return new UsageError(end.message)
  if (end.of === 'mirror') return new MirrorError(end.message)
  if (end.of === 'job') return new JobError(end.code, end.message)
  const error = new Error(end.message)
  if (end.stack !== undefined) error.stack = end.stack
  return error
}

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
