import type { Logger } from 'pino'
import type { KnownError } from '../../errors.ts'
import type { JobResult } from '../../sync/job.ts'
import type { RefreshResult } from '../../sync/refresh/refresher.ts'
import { shouldWarnOfChanges } from '../../sync/refresh/state.ts'
import { untrustedNote } from '../../sync/removals.ts'
import type { RunRecord } from '../../sync/store.ts'
import type { Job } from '../../sync/types.ts'
import type { VerifyResult } from '../../sync/verify.ts'
import { counted, grouped, inWords } from '../../text.ts'

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

/** `21 pages, 12 new, 3 changed, 1 removed`. */
function numbersText({ pages, rowsAdded, rowsChanged, rowsRemoved }: Run): string {
  const removed = rowsRemoved > 0 ? `, ${grouped(rowsRemoved)} removed` : ''
  return `${counted(pages, 'page')}, ${grouped(rowsAdded)} new, ${grouped(rowsChanged)} changed${removed}`
}

/** The log line of a verification. `ms`: how long it took. */
export function logVerified(log: Logger, { differences, error }: VerifyResult, ms: number): void {
  if (differences) {
    const { items, counts, isCut, moved, coverage } = differences
    log.info(
      {
        event: 'verified',
        duration_ms: ms,
        rows_seen: items,
        ...counts,
        ...(isCut ? { at_least: true } : {}),
        moved,
        coverage,
      },
      'verified',
    )
    return
  }
  log[levelOf({ error })]({ event: 'not_verified', duration_ms: ms, ...failure(error) }, 'not verified')
  logStack(log, error)
}

/** The log lines of a run that ended. `ms`: how long it took; `isKnown`: whether its cause was told of another list. */
export function logRun(log: Logger, result: JobResult, ms: number, isKnown: boolean): void {
  const { run, runId, walk, items, trigger, coverage, error, heldBack, untrusted } = result
  const level = error ? (isKnown ? 'info' : levelOf(result)) : heldBack ? 'warn' : 'info'
  if (!run) {
    // If another process works on the list, nothing is wrong.
    const lost =
      error?.code === 'BUSY'
        ? 'run left to another worker'
        : 'run ended, but its numbers could not be read from the mirror'
    const message = walk ? lost : 'run not begun'
    const event = walk ? 'run_lost' : 'run_not_begun'
    const known = error ?? heldBack
    log[isExpected(result) ? 'debug' : level]({ event, trigger, ...failure(known) }, message)
    return
  }
  const fields = {
    event: 'run_finished',
    run_id: runId,
    duration_ms: ms,
    trigger,
    status: endStatus(error),
    walk_id: walk?.id,
    first_page: walk?.checkpoint.nextPage,
    items,
    ...runNumbers(run),
    coverage,
    ...failure(error ?? heldBack),
  }
  const end = endMessage('run', error ?? heldBack)
  log[level](fields, error ? end : `${end}: ${numbersText(run)}${coverage === null ? '' : `, ${coverage}`}`)
  if (untrusted)
    log.warn({ event: 'walk_untrusted', run_id: runId, walk_id: walk?.id }, untrustedNote(untrusted))
  logStack(log, error)
}

/** The log lines of a refresh that ended. */
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
  log[error ? levelOf({ error, trigger: 'schedule' }) : isNews ? 'info' : 'debug'](
    fields,
    error ? endMessage('refresh', error) : `refresh finished: ${numbersText(run)}`,
  )
  if (!error && shouldWarnOfChanges(saved.state))
    log.warn(
      { event: 'refresh_stopped_early', run_id: runId },
      'the last refreshes met 1,000 changed rows in a row and stopped there, so fresh_as_of stays until the next full ' +
        `walk; a field that changes in every answer belongs in collections.${collection.name}.ignore`,
    )
  logStack(log, error)
}

/** A refresh is tried again every few minutes: what keeps it from running was reported where that began, or ends by itself. */
function isExpected({ trigger, error }: JobResult): boolean {
  return trigger === 'refresh' && ['BUSY', 'UNAUTHORIZED', 'RATE_LIMITED'].includes(error?.code ?? '')
}

function endStatus(error: KnownError | null): 'succeeded' | 'interrupted' | 'failed' {
  if (!error || error.code === 'REMOVALS_HELD') return 'succeeded'
  return error.code === 'INTERRUPTED' ? 'interrupted' : 'failed'
}

function endMessage(what: 'run' | 'refresh', error: KnownError | null): string {
  const status = endStatus(error)
  return `${what} ${status === 'succeeded' ? 'finished' : status}`
}

/** BUSY is no error. But somebody who asked for the list by hand did not get it, which is a warning. */
function levelOf({
  error,
  trigger = 'manual',
  walk = null,
}: Pick<JobResult, 'error'> & Partial<Pick<JobResult, 'trigger' | 'walk'>>): 'info' | 'warn' | 'error' {
  if (error?.code === 'INTERRUPTED') return 'warn'
  if (error?.code !== 'BUSY') return 'error'
  return walk !== null || trigger === 'schedule' ? 'info' : 'warn'
}

function failure(error: KnownError | null): object {
  return error ? { error_code: error.code, error_message: error.message } : {}
}

function logStack(log: Logger, error: KnownError | null): void {
  if (error?.code === 'INTERNAL')
    log.debug({ event: 'error_stack', stack: error.stack }, 'where the unexpected error came from')
}

/** What a command has done, of all its lists together. */
interface CommandTotals {
  lists: number
  failed: number
  /** Left to another process that works on them. */
  busy: number
  /** Stopped by a signal. */
  stopped: number
  requests: number
  /** Null: the command writes nothing. */
  written: { rows_added: number; rows_changed: number; rows_removed: number } | null
}

export function newTotals(): CommandTotals {
  return { lists: 0, failed: 0, busy: 0, stopped: 0, requests: 0, written: null }
}

/** Adds a list that ended. `run`: null if nothing was written. */
export function addList(
  totals: CommandTotals,
  error: KnownError | null,
  requests: number,
  run: Pick<RunRecord, 'rowsAdded' | 'rowsChanged' | 'rowsRemoved'> | null,
): void {
  totals.lists++
  if (error?.code === 'INTERRUPTED') totals.stopped++
  else if (error?.code === 'BUSY') totals.busy++
  else if (error) totals.failed++
  totals.requests += requests
  if (!run) return
  totals.written ??= { rows_added: 0, rows_changed: 0, rows_removed: 0 }
  totals.written.rows_added += run.rowsAdded
  totals.written.rows_changed += run.rowsChanged
  totals.written.rows_removed += run.rowsRemoved
}

/** The last line of a command; nothing for a single list, since the line of its run has said it. `ms`: how long the command took. */
export function logTotals(log: Logger, totals: CommandTotals, ms: number): void {
  const { written, ...counts } = totals
  if (counts.lists < 2) return
  log.info({ event: 'command_finished', duration_ms: ms, ...counts, ...written }, totalsText(totals, ms))
}

/** `20 lists in 13 minutes: 19 ended well, 1 failed; 12 rows new, 3 changed, 0 removed; 812 requests` */
export function totalsText(totals: CommandTotals, ms: number): string {
  const { lists, failed, busy, stopped, requests, written } = totals
  const others = [
    ...(failed > 0 ? [`${grouped(failed)} failed`] : []),
    ...(busy > 0 ? [`${grouped(busy)} left to another process`] : []),
    ...(stopped > 0 ? [`${grouped(stopped)} stopped`] : []),
  ]
  const well = others.length === 0 ? 'all' : grouped(lists - failed - busy - stopped)
  const parts = [
    `${counted(lists, 'list')} in ${inWords(ms)}: ${[`${well} ended well`, ...others].join(', ')}`,
  ]
  if (written) {
    const { rows_added: added, rows_changed: changed, rows_removed: removed } = written
    parts.push(`${counted(added, 'row')} new, ${grouped(changed)} changed, ${grouped(removed)} removed`)
  }
  return [...parts, counted(requests, 'request')].join('; ')
}
