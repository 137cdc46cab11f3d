import type { Config } from '../../../config/config.ts'
import { JobError } from '../../../errors.ts'
import { meaningOf } from '../../../store/postgres/read/errors.ts'
import type { Reading } from '../../../store/postgres/read/listed.ts'
import { exitCodeOfStop } from '../../exit-code.ts'
import { noMirror } from '../../mirror-file.ts'
import { type OutputFile, writeOutput } from '../../output/output-file.ts'
import { writeAll } from '../../output/write-all.ts'
import type { TimeLimit } from '../../reading/run-reading.ts'
import type { Runtime } from '../../runtime.ts'
import { openPostgresForReading } from '../open.ts'

export interface ReadingOptions {
  /** Null: standard output. */
  output: OutputFile | null
  limit?: TimeLimit | null
  /** Usage is checked before it is said that there is no mirror yet. Throws UsageError. */
  assertUsage?: () => void
  /** What an error of a statement means; as usual for those of our own. */
  meaning?: (error: unknown) => unknown
}

/**
 * Writes what `read` returns while it is read, on one snapshot, in a transaction that can only read: also of a role that may write.
 * A signal or the end of the time ends the statement on the server, too. Returns the exit code. Throws UsageError, MirrorError,
 * and JobError when the time is over.
 */
export async function readMirror(
  config: Config,
  runtime: Runtime,
  { output, limit = null, meaning = meaningOf, assertUsage }: ReadingOptions,
  read: (sql: Reading) => Promise<AsyncIterable<Uint8Array> | Iterable<Uint8Array>>,
): Promise<number> {
  const { signal, stdout, stderr, newToken } = runtime
  // Only an unfinished file must be deleted after a signal. The server notices that this process is gone.
  if (!output?.isRegular) {
    // Node tells of a signal in the loop's next turn: one that came before is not lost.
    await runtime.yieldToEventLoop()
    runtime.dieOnSignal()
  }
  const time = startTimer(runtime, limit)
  const stop = AbortSignal.any([signal, time.over])
  try {
    const server = await openPostgresForReading(config, runtime)
    if (!server) {
      assertUsage?.()
      throw noMirror(config.database)
    }
    try {
      await server.readingOnce(
        async (sql) => {
          if (limit) await sql.exec(`SET LOCAL statement_timeout = ${Math.ceil(limit.ms)}`)
          const pieces = await read(sql)
          if (output) await writeOutput(output, pieces, newToken, signal)
          else await writeAll(stdout, pieces)
        },
        { stop, meaning },
      )
    } finally {
      await server.close()
    }
    return 0
  } catch (error) {
    if (signal.aborted && output) {
      stderr.write(`stopped; ${output.shown} is as it was\n`)
      return exitCodeOfStop(signal)
    }
    if (limit && (time.over.aborted || isTimeout(error)))
      throw new JobError('TIMEOUT', `not finished after ${limit.typed} (--timeout), so it was stopped`)
    throw error
  } finally {
    time.end()
  }
}

/** The server's own limit is the same, and may be noticed first. */
function isTimeout(error: unknown): boolean {
  return error instanceof JobError && error.code === 'TIMEOUT'
}

function startTimer({ sleep }: Runtime, limit: TimeLimit | null): { over: AbortSignal; end: () => void } {
  const over = new AbortController()
  const end = new AbortController()
  if (limit)
    sleep(limit.ms, end.signal).then(
      () => over.abort(),
      () => {},
    )
  return { over: over.signal, end: () => end.abort() }
}
