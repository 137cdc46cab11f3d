import type { Logger } from 'pino'
import type { KnownError } from '../../errors.ts'
import type { JobResult } from '../../sync/job.ts'
import type { RefreshResult } from '../../sync/refresh/refresher.ts'
import type { Trigger } from '../../sync/types.ts'
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
  if (error) return error.code === 'INTERRUPTED' ? 'interrupted' : 'failed'
  const removed = rowsRemoved > 0 ? `, ${grouped(rowsRemoved)} removed` : ''
  return `finished: ${counted(pages, 'page')}, ${grouped(rowsAdded)} new, ${grouped(rowsChanged)} changed${removed}`
}

/** Of the line that ends a run. BUSY is no error, but somebody who asked for the list by hand did not get it. */
function levelOf({ code }: KnownError, trigger?: Trigger): 'info' | 'warn' | 'error' {
  if (code === 'INTERRUPTED') return 'warn'
  if (code !== 'BUSY') return 'error'
  return trigger === 'schedule' || trigger === 'refresh' ? 'info' : 'warn'
}

function failure(error: KnownError | null): object {
  return error ? { error_code: error.code, error_message: error.message } : {}
}

/** What a report of a defect needs. */
function logStack(log: Logger, error: KnownError | null): void {
  if (error?.code === 'INTERNAL')
    log.debug({ event: 'error_stack', stack: error.stack }, 'where the unexpected error came from')
}

/** `isKnown`: the cause of its failure was told of another list. */
export function logRun(log: Logger, result: JobResult, ms: number, isKnown: boolean): void {
  const { run, walk, trigger, coverage, error, heldBack, untrusted } = result
  const level = error ? (isKnown ? 'info' : levelOf(error, trigger)) : heldBack ? 'warn' : 'info'
  const fields = { trigger, ...failure(error ?? heldBack) }
  if (!run) {
    // A refresh is tried again every few minutes: what keeps it from running was reported where that began, or ends by itself.
    const isExpected = trigger === 'refresh' && /^(?:BUSY|UNAUTHORIZED|RATE_LIMITED)$/.test(error?.code ?? '')
    if (walk)
      log[level](
        { event: 'run_lost', ...fields },
        'run lost: another process has the list, or the mirror cannot be read',
      )
    else log[isExpected ? 'debug' : level]({ event: 'run_not_begun', ...fields }, 'run not begun')
    return
  }
  log[level](
    {
      event: 'run_finished',
      run_id: result.runId,
      duration_ms: ms,
      status: error ? (error.code === 'INTERRUPTED' ? 'interrupted' : 'failed') : 'succeeded',
      walk_id: walk?.id,
      first_page: walk?.checkpoint.nextPage,
      items: result.items,
      ...runNumbers(run),
      coverage,
      ...fields,
    },
    `run ${endText(error, run)}${error || coverage === null ? '' : `, ${coverage}`}`,
  )
  if (untrusted)
    log.warn(
      { event: 'walk_untrusted', run_id: result.runId, walk_id: walk?.id },
      `this walk removed nothing: ${untrusted}`,
    )
  logStack(log, error)
}

export function logRefresh(log: Logger, result: RefreshResult): void {
  const { runId, run, saved, isAsked, error } = result
  const isNews = isAsked || run.rowsAdded + run.rowsChanged > 0
  // Hundreds of refreshes a day find nothing.
  const level = error ? levelOf(error, 'refresh') : isNews ? 'info' : 'debug'
  log[level](
    {
      event: 'refresh_finished',
      run_id: runId,
      duration_ms: result.tookMs,
      ...runNumbers(run),
      fresh_as_of: new Date(saved.freshAsOf).toISOString(),
      newest: saved.newest,
      ...failure(error),
    },
    `refresh ${endText(error, run)}`,
  )
  logStack(log, error)
}

export function logVerified(log: Logger, { differences, error }: VerifyResult, ms: number): void {
  if (differences) {
    const { items, counts, moved, coverage } = differences
    const fields = { event: 'verified', duration_ms: ms, rows_seen: items, ...counts, moved, coverage }
    log.info(fields, 'verified')
    return
  }
  const level = error ? levelOf(error) : 'error'
  log[level]({ event: 'not_verified', duration_ms: ms, ...failure(error) }, 'not verified')
  logStack(log, error)
}
