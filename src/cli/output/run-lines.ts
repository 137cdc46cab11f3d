import type { Logger } from 'pino'
import type { KnownError } from '../../errors.ts'
import type { JobResult } from '../../sync/job.ts'
import type { RefreshResult } from '../../sync/refresh/refresher.ts'
import { shouldWarnOfChanges } from '../../sync/refresh/state.ts'
import { untrustedNote } from '../../sync/removals.ts'
import type { Job } from '../../sync/types.ts'
import type { VerifyResult } from '../../sync/verify.ts'
import { counted, grouped } from '../../text.ts'

// The log lines of work that ended. `ms`: how long it took.

type Run = NonNullable<JobResult['run']>

/** The numbers of a run, by their names in `sync_runs`. */
function runNumbers(run: Run) {
  return {
    pages: run.pages,
    rows_seen: run.rowsSeen,
    rows_added: run.rowsAdded,
    rows_changed: run.rowsChanged,
    rows_removed: run.rowsRemoved,
    requests: run.requests,
    retries: run.retries,
    rate_limit_hits: run.rateLimitHits,
    rate_limit_wait_ms: run.rateLimitWaitMs,
  }
}

/** `finished: 21 pages, 12 new, 3 changed, 1 removed`, or how it ended. */
function endText(error: KnownError | null, { pages, rowsAdded, rowsChanged, rowsRemoved }: Run): string {
  if (error?.code === 'INTERRUPTED') return 'interrupted'
  if (error) return 'failed'
  const removed = rowsRemoved > 0 ? `, ${grouped(rowsRemoved)} removed` : ''
  return `finished: ${counted(pages, 'page')}, ${grouped(rowsAdded)} new, ${grouped(rowsChanged)} changed${removed}`
}

type Level = 'debug' | 'info' | 'warn' | 'error'

/**
 * The level of the line that ends a run. BUSY is no error, but somebody who asked for the list by hand did not get it. `isKnown`: its
 * cause was told of another list.
 */
function levelOf(error: KnownError, { isByHand = true, isKnown = false } = {}): Level {
  if (error.code === 'INTERRUPTED') return 'warn'
  if (error.code === 'BUSY') return isByHand ? 'warn' : 'info'
  return isKnown ? 'info' : 'error'
}

function failure(error: KnownError | null): object {
  return error ? { error_code: error.code, error_message: error.message } : {}
}

function logStack(log: Logger, error: KnownError | null): void {
  if (error?.code === 'INTERNAL')
    log.debug({ event: 'error_stack', stack: error.stack }, 'where the unexpected error came from')
}

export function logRun(log: Logger, result: JobResult, ms: number, isKnown: boolean): void {
  const { run, runId, walk, items, trigger, coverage, error, heldBack, untrusted } = result
  const isByHand = trigger !== 'schedule' && walk === null
  const level = error ? levelOf(error, { isByHand, isKnown }) : heldBack ? 'warn' : 'info'
  if (!run) {
    logNoRun(log, result, level)
    return
  }
  const fields = {
    event: 'run_finished',
    run_id: runId,
    duration_ms: ms,
    trigger,
    status: error ? (error.code === 'INTERRUPTED' ? 'interrupted' : 'failed') : 'succeeded',
    walk_id: walk?.id,
    first_page: walk?.checkpoint.nextPage,
    items,
    ...runNumbers(run),
    coverage,
    ...failure(error ?? heldBack),
  }
  log[level](fields, `run ${endText(error, run)}${error || coverage === null ? '' : `, ${coverage}`}`)
  if (untrusted)
    log.warn({ event: 'walk_untrusted', run_id: runId, walk_id: walk?.id }, untrustedNote(untrusted))
  logStack(log, error)
}

/** A refresh is tried again every few minutes: what keeps it from running was reported where that began, or ends by itself. */
const EXPECTED: ReadonlySet<string> = new Set(['BUSY', 'UNAUTHORIZED', 'RATE_LIMITED'])

/** Of a job that did not begin, or whose mirror was lost. */
function logNoRun(log: Logger, { walk, trigger, error, heldBack }: JobResult, level: Level): void {
  const isExpected = trigger === 'refresh' && EXPECTED.has(error?.code ?? '')
  const fields = { trigger, ...failure(error ?? heldBack) }
  if (walk === null) log[isExpected ? 'debug' : level]({ event: 'run_not_begun', ...fields }, 'run not begun')
  else
    log[level](
      { event: 'run_lost', ...fields },
      'run lost: another process has the list, or the mirror cannot be read',
    )
}

export function logRefresh(log: Logger, { collection }: Job, result: RefreshResult): void {
  const { runId, run, saved, isAsked, error } = result
  const isNews = isAsked || run.rowsAdded + run.rowsChanged > 0
  const fields = {
    event: 'refresh_finished',
    run_id: runId,
    duration_ms: result.tookMs,
    ...runNumbers(run),
    fresh_as_of: new Date(saved.freshAsOf).toISOString(),
    newest: saved.newest,
    ...failure(error),
  }
  // Hundreds of refreshes a day find nothing.
  const level = error ? levelOf(error, { isByHand: false }) : isNews ? 'info' : 'debug'
  log[level](fields, `refresh ${endText(error, run)}`)
  if (!error && shouldWarnOfChanges(saved.state))
    log.warn(
      { event: 'refresh_stopped_early', run_id: runId },
      'the last refreshes met 1,000 changed rows in a row and stopped there, so fresh_as_of stays until the next full ' +
        `walk; a field that changes in every answer belongs in collections.${collection.name}.ignore`,
    )
  logStack(log, error)
}

export function logVerified(log: Logger, { differences, error }: VerifyResult, ms: number): void {
  if (differences) {
    const { items, counts, isCut, moved, coverage } = differences
    const fields = { event: 'verified', duration_ms: ms, rows_seen: items, ...counts, moved, coverage }
    log.info(isCut ? { ...fields, at_least: true } : fields, 'verified')
    return
  }
  const level = error ? levelOf(error) : 'error'
  log[level]({ event: 'not_verified', duration_ms: ms, ...failure(error) }, 'not verified')
  logStack(log, error)
}
