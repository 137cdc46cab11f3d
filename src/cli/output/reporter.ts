import type { Logger } from 'pino'
import type { ErrorCode, KnownError } from '../../errors.ts'
import { type Pace, timeLeft } from '../../report/time-left.ts'
import type { JobEvent, JobResult } from '../../sync/job.ts'
import type { RefreshResult } from '../../sync/refresh/refresher.ts'
import { ownerName, workText } from '../../sync/run.ts'
import type { Job, Notice, Observe } from '../../sync/types.ts'
import type { VerifyResult } from '../../sync/verify.ts'
import { counted, grouped, inWords, jobName, printable } from '../../text.ts'
import type { Runtime } from '../runtime.ts'
import type { Log } from './log.ts'

// What jobs do, as log lines, and on a terminal as a line a list, too.

export interface Reporter {
  /** Gets what happens while a job is synced or verified. */
  observe(job: Job): Observe<JobEvent>
  close(): void
}

export interface ReporterOptions extends Log {
  runtime: Pick<Runtime, 'now' | 'every'>
  /** Names the rate budget of a job. */
  budgetOf: (job: Job) => string
  /** Called after each refresh. */
  onRefresh?: () => void
}

/** How far a list is. Times are epoch milliseconds. */
interface Progress {
  label: string
  budget: string
  begunAt: number | null
  /** Answers of this run, the page read last, and the last one of the list, where that is known. */
  pages: number
  page: number
  lastPage: number | null
  rows: number
  waitedMs: number
  perMinute: number | null
  /** What it waits for; `until` null: for another process. */
  wait: { for: string; until: number | null } | null
}

const DRAW_EVERY_MS = 200

/** A shorter wait only spreads requests as usual, and is logged for debugging only. */
const LOGGED_WAIT_MS = 5000

/** Faults that all lists have at once: told as a fault of one list, not of each, and after this long again. */
const SHARED: ReadonlySet<ErrorCode> = new Set(['NETWORK', 'TIMEOUT', 'SERVER_ERROR', 'DATABASE'])
const TOLD_AGAIN_MS = 300_000

/** Reports what jobs do. */
export function createReporter({ runtime, logger, draw, budgetOf, onRefresh }: ReporterOptions): Reporter {
  const { now, every } = runtime
  const running = new Set<Progress>()
  const toldAt = new Map<string, number>()
  const redraw = () => draw?.(linesOf([...running], now()))
  const stopDrawing = draw ? every(DRAW_EVERY_MS, redraw) : () => {}

  /** Whether such a fault was told lately, of any list; else it is now. */
  function isTold(event: 'retry' | 'finish', code: ErrorCode): boolean {
    const key = `${event} ${code}`
    const last = toldAt.get(key) ?? Number.NEGATIVE_INFINITY
    if (SHARED.has(code) && Math.abs(now() - last) < TOLD_AGAIN_MS) return true
    toldAt.set(key, now())
    return false
  }

  function observe(job: Job): Observe<JobEvent> {
    const log = logger.child({ organization: job.organization.name, collection: job.collection.name })
    const observedAt = now()
    const label = printable(jobName(job), 60)
    const list: Progress = {
      label,
      budget: budgetOf(job),
      begunAt: null,
      pages: 0,
      page: 0,
      lastPage: null,
      rows: 0,
      waitedMs: 0,
      perMinute: null,
      wait: null,
    }
    running.add(list)
    redraw()
    const ended = () => {
      running.delete(list)
      redraw()
    }
    return (event) => {
      const at = now()
      switch (event.kind) {
        case 'busy': {
          const { owner: name, work } = event
          const owner = ownerName(name, work)
          if (list.wait?.for === owner) return
          list.wait = { for: owner, until: null }
          const fields = { event: 'list_busy', owner: name, trigger: work?.trigger ?? undefined }
          log.info(fields, `${owner} ${workText(work)}; waiting for its end`)
          return
        }
        case 'start': {
          const { id, checkpoint, resumed, rowsSeen } = event.walk
          Object.assign(list, { wait: null, rows: rowsSeen })
          const fields = { event: 'walk_resumed', walk_id: id, page: checkpoint.nextPage }
          if (resumed) log.info(fields, 'an interrupted walk continues')
          return
        }
        case 'request':
          list.begunAt ??= at
          list.wait = null
          return
        case 'retry': {
          const { code, reason, delayMs } = event
          list.wait = { for: reason, until: at + delayMs }
          const fields = { event: 'request_retried', error_code: code, delay_ms: delayMs }
          log[isTold('retry', code) ? 'debug' : 'warn'](fields, `${reason}; trying again`)
          return
        }
        case 'wait': {
          const { reason, until } = event
          list.wait = { for: reason, until }
          const time = new Date(until).toISOString()
          const fields = { event: 'waiting', reason, until: time }
          log[until - at >= LOGGED_WAIT_MS ? 'info' : 'debug'](fields, `waiting until ${time}: ${reason}`)
          return
        }
        case 'page': {
          const { number, items, lastPage, next } = event.page
          const { added, changed, notices } = event.result
          const { itemsInWalk: rows, perMinute } = event
          Object.assign(list, { pages: list.pages + 1, page: number, lastPage, rows, perMinute })
          log.debug({ event: 'page_read', page: number, items: items.length, added, changed }, 'page read')
          if (number > 1 && items.length === 0 && next === null) {
            const length = lastPage === null ? '' : ` (${counted(lastPage, 'page')})`
            const text = `page ${number} is beyond the end of the list${length}: nothing is there`
            log.info({ event: 'beyond_end', page: number }, text)
          }
          logNotices(log, number, notices)
          return
        }
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
          ended()
          const { error, isInstead } = event.result
          // A refresh is reported already.
          if (isInstead) return
          const level = error && isTold('finish', error.code) ? 'info' : levelOf(error)
          logRun(log, event.result, at - observedAt, level)
          return
        }
        case 'verified':
          ended()
          logVerified(log, event.result, at - observedAt)
          return
        case 'waited':
          list.waitedMs += event.ms
          return
        case 'throttled':
        // The line of the run has their number.
      }
    }
  }

  return {
    observe,
    close() {
      stopDrawing()
      draw?.([])
    },
  }
}

/** A line for each list that is being read, those that move first. */
function linesOf(running: readonly Progress[], now: number): string[] {
  const lists = running.toSorted((a, b) => Number(b.pages > 0) - Number(a.pages > 0))
  const widest = Math.max(...lists.map(({ label }) => label.length))
  // One that another process has sends nothing.
  const paces = new Map(
    lists.filter(({ wait }) => wait?.until !== null).map((one) => [one, paceOf(one, now)]),
  )
  return lists.map((list) => {
    const pace = paces.get(list)
    const left = pace === undefined ? null : timeLeft(pace, [...paces.values()])
    return `${list.label.padEnd(widest)}  ${stateText(list, left, now)}`
  })
}

function paceOf(list: Progress, now: number): Pace {
  const { begunAt, pages, page, lastPage, wait } = list
  return {
    ...list,
    runMs: now - (begunAt ?? now),
    waitMs: Math.max((wait?.until ?? now) - now, 0),
    pagesLeft: pages === 0 || lastPage === null ? null : Math.max(lastPage - page, 0),
  }
}

/** `page 12 of 40, 300 rows, about 2 minutes left`, or what the list waits for. */
function stateText(
  { pages, page, lastPage, rows, wait }: Progress,
  left: number | null,
  now: number,
): string {
  const parts: string[] = []
  const of = lastPage === null || lastPage < page ? '' : ` of ${grouped(lastPage)}`
  if (pages > 0) parts.push(`page ${grouped(page)}${of}, ${counted(rows, 'row')}`)
  if (left !== null) parts.push(`about ${inWords(left)} left`)
  if (wait?.until === null) parts.push(`waits for ${printable(wait.for, 60)}`)
  else if (wait && wait.until > now)
    parts.push(`waits ${inWords(wait.until - now)}: ${printable(wait.for, 100)}`)
  return parts.join(', ') || 'waits for its first page'
}

function logNotices(log: Logger, page: number, notices: readonly Notice[]): void {
  for (const { event = 'columns_changed', level, message } of notices)
    log[level]({ event, page }, printable(message, 500))
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

function logRun(log: Logger, result: JobResult, ms: number, level: Level): void {
  const { run, walk, trigger, coverage, error, heldBack, untrusted } = result
  const fields = { trigger, ...failure(error ?? heldBack) }
  if (!run && !walk) {
    // A refresh comes every few minutes: what keeps it from running was told where that began.
    const isExpected = trigger === 'refresh' && /^(?:BUSY|UNAUTHORIZED|RATE_LIMITED)$/.test(error?.code ?? '')
    log[isExpected ? 'debug' : level]({ event: 'run_not_begun', ...fields }, 'run not begun')
    return
  }
  const end = endText(error, run)
  log[heldBack || untrusted ? 'warn' : level](
    {
      event: 'run_finished',
      run_id: result.runId,
      duration_ms: ms,
      status: error ? end : 'succeeded',
      walk_id: walk?.id,
      first_page: walk?.checkpoint.nextPage,
      items: result.items,
      ...(run && runNumbers(run)),
      coverage,
      ...fields,
    },
    [
      `run ${end}${error || coverage === null ? '' : `, ${coverage}`}`,
      ...(untrusted ? [`it removed nothing, since ${untrusted}`] : []),
    ].join('; '),
  )
}

function logRefresh(log: Logger, { runId, tookMs, run, state, isAsked, error }: RefreshResult): void {
  const isNews = isAsked || run.rowsAdded + run.rowsChanged > 0
  // Hundreds of refreshes a day find nothing.
  log[error ? levelOf(error) : isNews ? 'info' : 'debug'](
    {
      event: 'refresh_finished',
      run_id: runId,
      duration_ms: tookMs,
      ...runNumbers(run),
      fresh_as_of: new Date(state.freshAsOf).toISOString(),
      newest: state.newest,
      ...failure(error),
    },
    `refresh ${endText(error, run)}`,
  )
}

function logVerified(log: Logger, { differences, error }: VerifyResult, ms: number): void {
  const fields = { duration_ms: ms, ...failure(error) }
  if (!differences) log[levelOf(error)]({ event: 'not_verified', ...fields }, 'not verified')
  else {
    const { items, counts, moved, coverage } = differences
    log.info({ event: 'verified', ...fields, rows_seen: items, ...counts, moved, coverage }, 'verified')
  }
}
