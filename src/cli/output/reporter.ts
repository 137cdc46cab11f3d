import type { Logger } from 'pino'
import { type ErrorCode, ERRORS, type KnownError } from '../../errors.ts'
import type { JobEvent, JobResult } from '../../sync/job.ts'
import type { RefreshResult } from '../../sync/refresh/refresher.ts'
import { ownerName } from '../../sync/run.ts'
import type { Job, Notice, Observe } from '../../sync/types.ts'
import type { VerifyResult } from '../../sync/verify.ts'
import { counted, grouped, printable } from '../../text.ts'
import type { Runtime } from '../runtime.ts'

// What jobs do, as log lines.

export interface ReporterOptions {
  now: Runtime['now']
  logger: Logger
  /** Called after each refresh. */
  onRefresh?: () => void
}

/** A shorter wait only spreads requests as usual, and is logged for debugging only. */
const LOGGED_WAIT_MS = 5000

/** What all lists meet at once, a fault or a wait, is told as one of one list, not of each, and after this long again. */
const TOLD_AGAIN_MS = 300_000

export function createReporter({ now, logger, onRefresh }: ReporterOptions) {
  const toldAt = new Map<string, number>()
  /** The end of the wait that was told last, by its reason. */
  const toldUntil = new Map<string, number>()

  /** Whether such a fault was told lately, of any list; else it is now. */
  function isTold(event: 'retry' | 'finish', code: ErrorCode, shared = ''): boolean {
    const key = `${event} ${code} ${shared}`
    const last = toldAt.get(key) ?? Number.NEGATIVE_INFINITY
    if (ERRORS[code].ofAll && Math.abs(now() - last) < TOLD_AGAIN_MS) return true
    toldAt.set(key, now())
    return false
  }

  /** Whether why a run failed was told lately. */
  function isKnown(error: KnownError | null): boolean {
    return error !== null && isTold('finish', error.code, error.shared)
  }

  return {
    /** Gets what happens while a job is synced or verified. */
    observe(job: Job): Observe<JobEvent> {
      const log = logger.child({ organization: job.organization.name, collection: job.collection.name })
      const observedAt = now()
      let waitsFor = ''
      return (event) => {
        switch (event.kind) {
          case 'busy': {
            const { owner } = event
            // It is said again at each look.
            const text = `${ownerName(owner)} is working on it; waiting for its end`
            if (text !== waitsFor) log.info({ event: 'list_busy', owner }, text)
            waitsFor = text
            return
          }
          case 'start': {
            const { id: walk_id, nextPage: page, resumed } = event.walk
            if (resumed) log.info({ event: 'walk_resumed', walk_id, page }, 'an interrupted walk continues')
            return
          }
          case 'retry': {
            const { code, reason, delayMs } = event
            const fields = { event: 'request_retried', error_code: code, delay_ms: delayMs }
            log[isTold('retry', code) ? 'debug' : 'warn'](fields, `${reason}; trying again`)
            return
          }
          case 'wait': {
            const { reason, until } = event
            const time = new Date(until).toISOString()
            const last = toldUntil.get(reason) ?? Number.NEGATIVE_INFINITY
            const isNews = Math.abs(until - last) >= TOLD_AGAIN_MS
            const level = until - now() >= LOGGED_WAIT_MS && isNews ? 'info' : 'debug'
            if (level === 'info') toldUntil.set(reason, until)
            log[level]({ event: 'waiting', reason, until: time }, `waiting until ${time}: ${reason}`)
            return
          }
          case 'page':
            logPage(log, event)
            return
          case 'notices':
            logNotices(log, event.page, event.notices)
            return
          case 'pass': {
            const why = `the list moved, or does not add up, so it is read again: ${event.why}`
            log.warn({ event: 'pass_repeated', pass: event.pass }, why)
            return
          }
          case 'refresh':
            logRefresh(log, event.result)
            onRefresh?.()
            return
          case 'finish': {
            const { error, isInstead } = event.result
            // A refresh is reported already.
            if (isInstead) return
            logRun(log, event.result, now() - observedAt, isExpected(event.result) || isKnown(error))
            return
          }
          case 'verified':
            logVerified(log, event.result, now() - observedAt, isKnown(event.result.error))
            return
          case 'request':
          case 'waited':
          case 'throttled':
          // The line of the run has their numbers.
        }
      }
    },
  }
}

function logPage(log: Logger, { page, result }: JobEvent & { kind: 'page' }): void {
  const { number, items, lastPage, next } = page
  const { added, changed, notices } = result
  log.debug({ event: 'page_read', page: number, items: items.length, added, changed }, 'page read')
  if (number > 1 && items.length === 0 && next === null) {
    const length = lastPage === null ? '' : ` (${counted(lastPage, 'page')})`
    const text = `page ${number} is beyond the end of the list${length}: nothing is there`
    log.info({ event: 'beyond_end', page: number }, text)
  }
  logNotices(log, number, notices)
}

function logNotices(log: Logger, page: number, notices: readonly Notice[]): void {
  for (const { event = 'columns_changed', message } of notices)
    log.warn({ event, page }, printable(message, 500))
}

type Run = NonNullable<JobResult['run']>

/** The numbers of a run, by their names in `sync_runs`. */
function runNumbers(run: Run): Record<string, number> {
  return Object.fromEntries(
    Object.entries(run).map(([name, count]) => [
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      count,
    ]),
  )
}

/** `finished: 21 pages, 12 new, 3 changed, 1 removed`, or how it ended. */
function endText(error: KnownError | null, run: Run | null): string {
  if (error || !run) return error?.code === 'INTERRUPTED' ? 'interrupted' : 'failed'
  const { pages, rowsAdded, rowsChanged, rowsRemoved } = run
  const removed = rowsRemoved > 0 ? `, ${grouped(rowsRemoved)} removed` : ''
  return `finished: ${counted(pages, 'page')}, ${grouped(rowsAdded)} new, ${grouped(rowsChanged)} changed${removed}`
}

type Level = 'info' | 'warn' | 'error'

/** Of the line that ends a run. */
function levelOf(error: KnownError | null): Level {
  if (!error) return 'info'
  return error.code === 'INTERRUPTED' || error.code === 'BUSY' ? 'warn' : 'error'
}

/** `stack`: what a report of a defect needs. */
function failure(error: KnownError | null): object {
  if (!error) return {}
  const { code: error_code, message: error_message, stack } = error
  return { error_code, error_message, ...(error_code === 'INTERNAL' && { stack }) }
}

/** A refresh comes every few minutes: what keeps it from running was told where that began. */
function isExpected({ run, walk, trigger, error }: JobResult): boolean {
  return (
    !run && !walk && trigger === 'refresh' && /^(?:BUSY|UNAUTHORIZED|RATE_LIMITED)$/.test(error?.code ?? '')
  )
}

/** `isQuiet`: what went wrong was told before, of this list or of another. */
function logRun(log: Logger, result: JobResult, ms: number, isQuiet: boolean): void {
  const { runId: run_id, run, walk, items, trigger, coverage, error, heldBack, untrusted } = result
  const why = { trigger, ...failure(error ?? heldBack) }
  if (!run && !walk) {
    log[isQuiet ? 'debug' : levelOf(error)]({ event: 'run_not_begun', ...why }, 'run not begun')
    return
  }
  const end = endText(error, run)
  const ended = { run_id, duration_ms: ms, status: error ? end : 'succeeded' }
  const walked = { walk_id: walk?.id, first_page: walk?.nextPage, items, coverage }
  const sure = error || coverage === null ? '' : `, ${coverage}`
  const kept = untrusted ? `; it removed nothing, since ${untrusted}` : ''
  // Held removals are an error, too: with `--quiet` nothing else would say why the command fails.
  const told = heldBack ?? (isQuiet ? null : error)
  log[told === null && untrusted ? 'warn' : levelOf(told)](
    { event: 'run_finished', ...ended, ...walked, ...(run && runNumbers(run)), ...why },
    `run ${end}${sure}${kept}`,
  )
}

function logRefresh(log: Logger, result: RefreshResult): void {
  const { runId: run_id, tookMs: duration_ms, run, state, isAsked, error } = result
  const fresh_as_of = new Date(state.freshAsOf).toISOString()
  const ends = { fresh_as_of, newest: state.newest, ...failure(error) }
  // Hundreds of refreshes a day find nothing.
  const level = isAsked || run.rowsAdded + run.rowsChanged > 0 ? 'info' : 'debug'
  log[error ? levelOf(error) : level](
    { event: 'refresh_finished', run_id, duration_ms, ...runNumbers(run), ...ends },
    `refresh ${endText(error, run)}`,
  )
}

function logVerified(log: Logger, { differences, error }: VerifyResult, ms: number, isQuiet: boolean): void {
  const fields = { duration_ms: ms, ...failure(error) }
  if (!differences)
    log[isQuiet ? 'debug' : levelOf(error)]({ event: 'not_verified', ...fields }, 'not verified')
  else {
    const { items, counts, moved, coverage } = differences
    log.info({ event: 'verified', ...fields, rows_seen: items, ...counts, moved, coverage }, 'verified')
  }
}
