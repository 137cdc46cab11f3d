import type { Config } from '../../../config/config.ts'
import { JobError } from '../../../errors.ts'
import { isMade } from '../../../store/postgres/migrations/migrate.ts'
import { isUnknownName, meaningOf, meaningOfSql } from '../../../store/postgres/read/errors.ts'
import type { Server } from '../../../store/postgres/server/server.ts'
import { newLockName } from '../../../store/sqlite/file/lock-file.ts'
import { exitCodeOfStop } from '../../exit-code.ts'
import { noMirror } from '../../mirror-file.ts'
import { writeAll } from '../../output/formats/format.ts'
import { writeOutput } from '../../output/output-file.ts'
import { idsOf } from '../../reading/exported.ts'
import { assertNameOf } from '../../reading/named.ts'
import { written } from '../../reading/read.ts'
import type { ReadingOptions, TimeLimit } from '../../reading/run-reading.ts'
import type { ReadingTask } from '../../reading/task.ts'
import type { Runtime } from '../../runtime.ts'
import { connect } from '../open.ts'
import { explaining, readableServer, statementOf } from './readable-server.ts'

/**
 * Does the task on one snapshot, in a transaction that can only read: also of a role that may write. A signal or the end of
 * the time ends the statement on the server, too. Returns the exit code. Throws UsageError, MirrorError, and JobError when
 * the time is over.
 */
export async function readOnServer(
  config: Config,
  runtime: Runtime,
  { task, output, limit = null }: ReadingOptions,
): Promise<number> {
  const { signal, stdout, stderr, newToken, pid } = runtime
  const { work } = task
  const names = work.kind === 'query' ? statementOf(work).names : null
  const meaning = (error: unknown) => (names ? meaningOfSql(error, names) : meaningOf(error))
  // Only an unfinished file must be deleted after a signal. The server notices that this process is gone.
  if (!output?.isRegular) {
    // Node tells of a signal in the loop's next turn: one that came before is not lost.
    await runtime.yieldToEventLoop()
    runtime.dieOnSignal()
  }
  const time = startTimer(runtime, limit)
  const stop = AbortSignal.any([signal, time.over])
  try {
    const report = (message: string) => stderr.write(`${message}\n`)
    const server = await connect(config.postgres, runtime, report, 'reading')
    try {
      if (!(await isMade(server))) {
        await assertUsage(server, work, config, stop)
        throw noMirror(config.database)
      }
      await server.readingOnce(
        async (sql) => {
          if (limit) await sql.exec(`SET LOCAL statement_timeout = ${Math.ceil(limit.ms)}`)
          const pieces = await written(readableServer(sql), task, report)
          const until = { lockName: newLockName(pid, newToken), mirror: null }
          if (output) await writeOutput(output, pieces, until, signal)
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

/** Usage is checked before it is said that there is no mirror yet. Throws UsageError, also for SQL that is wrong in any mirror. */
async function assertUsage(
  server: Server,
  work: ReadingTask['work'],
  { organizations, database }: Config,
  stop: AbortSignal,
): Promise<void> {
  if (work.kind === 'query') {
    const { text, values, names } = explaining(statementOf(work))
    const meaning = (error: unknown) =>
      isUnknownName(error) ? noMirror(database) : meaningOfSql(error, names)
    await server.readingOnce((sql) => sql.arrays(text, values), { stop, meaning })
    return
  }
  assertNameOf(work)
  if (work.kind === 'export') idsOf(organizations, work.organizations?.typed ?? [])
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
