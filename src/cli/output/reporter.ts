import type { Logger } from 'pino'
import { allowedPerMinute } from '../../api/rate/budget.ts'
import type { Config } from '../../config/config.ts'
import type { ErrorCode, KnownError } from '../../errors.ts'
import type { JobEvent, JobResult } from '../../sync/job.ts'
import { ownerName, workText } from '../../sync/owner-work.ts'
import type { Job, Notice, Observe, Page } from '../../sync/types.ts'
import type { VerifyEvent } from '../../sync/verify.ts'
import { counted, grouped, inWords, jobName, printable } from '../../text.ts'
import type { Runtime } from '../runtime.ts'
import { newProgress, type Progress, progressLines } from './progress.ts'
import { logRefresh, logRun, logVerified } from './run-lines.ts'
import type { Terminal } from './terminal.ts'

export interface Reporter {
  /** What is reported of a job's sync. */
  observe(job: Job): Observe<JobEvent>
  observeVerify(job: Job): Observe<VerifyEvent>
  /** On a terminal: a last line with the sums of the command; none for a single list, of which the line of its run has said it. */
  summarize(): void
  close(): void
}

export interface ReporterOptions {
  config: Pick<Config, 'rateLimit'>
  runtime: Pick<Runtime, 'now' | 'every'>
  logger: Logger
  terminal: Terminal
  /** Names the rate budget of a job. */
  budgetOf: (job: Job) => string
  /** Called after each refresh. */
  onRefresh?: () => void
}

const DRAW_EVERY_MS = 200

/** A shorter wait only spreads requests as usual, and is logged for debugging only. */
const LOGGED_WAIT_MS = 5000

/** Faults that all lists have at once: told of one, not of each, and after this long again. */
const SHARED: ReadonlySet<ErrorCode> = new Set(['NETWORK', 'TIMEOUT', 'SERVER_ERROR', 'DATABASE'])
const TOLD_AGAIN_MS = 300_000

/** Reports what jobs do: as log lines, and on a terminal as progress lines, too. */
export function createReporter({
  config,
  runtime,
  logger,
  terminal,
  budgetOf,
  onRefresh,
}: ReporterOptions): Reporter {
  const { now, every } = runtime
  const begunAt = now()
  const totals = { lists: 0, failed: 0, rows_added: 0, rows_changed: 0, rows_removed: 0 }
  const running = new Set<Progress>()
  const toldAt = new Map<string, number>()
  const draw = () => {
    if (terminal.isWatched) terminal.draw(running.size === 0 ? [] : progressLines([...running], now()))
  }
  const stopDrawing = terminal.isWatched ? every(DRAW_EVERY_MS, draw) : () => {}

  /** Whether such a fault was told lately, of any list; else it is now. */
  function isKnown(event: 'retry' | 'end', code: ErrorCode | undefined): boolean {
    if (code === undefined || !SHARED.has(code)) return false
    const [key, at] = [`${event} ${code}`, now()]
    if (Math.abs(at - (toldAt.get(key) ?? Number.NEGATIVE_INFINITY)) < TOLD_AGAIN_MS) return true
    toldAt.set(key, at)
    return false
  }

  function observe(job: Job): Observe<JobEvent | VerifyEvent> {
    const log = logger.child({ organization: job.organization.name, collection: job.collection.name })
    const list = newProgress(jobName(job), budgetOf(job))
    const observedAt = now()
    let walkId: number | null = null
    running.add(list)
    draw()

    const end = (error: KnownError | null, run: JobResult['run']) => {
      running.delete(list)
      draw()
      totals.lists++
      if (error) totals.failed++
      totals.rows_added += run?.rowsAdded ?? 0
      totals.rows_changed += run?.rowsChanged ?? 0
      totals.rows_removed += run?.rowsRemoved ?? 0
    }

    return (event) => {
      const at = now()
      switch (event.kind) {
        case 'busy': {
          const owner = ownerName(event.owner, event.work)
          if (list.owner === owner) return
          list.owner = owner
          const fields = { event: 'list_busy', owner: event.owner, trigger: event.work?.trigger ?? undefined }
          log.info(fields, `${owner} ${workText(event.work)}; waiting for its end`)
          return
        }
        case 'start': {
          const { id, checkpoint, resumed, rowsSeen } = event.walk
          list.owner = null
          list.rows = rowsSeen
          walkId = id
          const fields = { walk_id: id, page: checkpoint.nextPage, pass: checkpoint.pass }
          if (resumed) log.info({ event: 'walk_resumed', ...fields }, 'an interrupted walk continues')
          return
        }
        case 'request':
          list.begunAt ??= at
          list.wait = null
          return
        case 'retry': {
          const { code, reason, delayMs } = event
          list.wait = { reason, until: at + delayMs }
          const fields = { event: 'request_retried', error_code: code, delay_ms: delayMs }
          log[isKnown('retry', code) ? 'debug' : 'warn'](fields, `${reason}; trying again`)
          return
        }
        case 'wait': {
          const { reason, until } = event
          list.wait = { reason, until }
          const level = until - at >= LOGGED_WAIT_MS ? 'info' : 'debug'
          const time = new Date(until).toISOString()
          log[level]({ event: 'waiting', reason, until: time }, `waiting until ${time}: ${reason}`)
          return
        }
        case 'waited':
          list.waitedMs += event.ms
          return
        case 'page': {
          const { page, result, itemsInWalk } = event
          list.pages++
          list.page = page.number
          list.lastPage = page.lastPage
          list.rows = itemsInWalk
          list.perMinute = allowedPerMinute(page.announcedLimit, config.rateLimit)
          const { added, changed } = result
          const fields = { walk_id: walkId, page: page.number, items: page.items.length, added, changed }
          log.debug({ event: 'page_read', ...fields }, 'page read')
          logBeyondEnd(log, page)
          logNotices(log, page.number, result.notices)
          return
        }
        case 'notices':
          logNotices(log, event.page, event.notices)
          return
        case 'pass': {
          const why = `the list moved, or does not add up, so it is read again: ${event.why}`
          log.warn({ event: 'pass_repeated', walk_id: walkId, pass: event.pass }, why)
          return
        }
        case 'refresh':
          logRefresh(log, job, event.result)
          onRefresh?.()
          return
        case 'finish': {
          const { result } = event
          end(result.error ?? result.heldBack, result.run)
          // A refresh is reported already.
          if (!result.isInstead) logRun(log, result, at - observedAt, isKnown('end', result.error?.code))
          return
        }
        case 'verified':
          end(event.result.error, null)
          logVerified(log, event.result, at - observedAt)
          return
        case 'throttled':
        // The line of the run has their number.
      }
    }
  }

  return {
    observe,
    observeVerify: observe,
    summarize() {
      if (!terminal.isWatched || totals.lists < 2) return
      const { lists, failed, rows_added: added, rows_changed: changed, rows_removed: removed } = totals
      const ms = now() - begunAt
      const ended = failed === 0 ? 'all ended well' : `${grouped(failed)} did not end well`
      logger.info(
        { event: 'command_finished', duration_ms: ms, ...totals },
        `${counted(lists, 'list')} in ${inWords(ms)}: ${ended}; ${counted(added, 'row')} new, ${grouped(changed)} changed, ${grouped(removed)} removed`,
      )
    },
    close() {
      stopDrawing()
      terminal.close()
    },
  }
}

function logNotices(log: Logger, page: number, notices: readonly Notice[]): void {
  for (const { event = 'columns_changed', level, message } of notices)
    log[level]({ event, page }, printable(message, 500))
}

function logBeyondEnd(log: Logger, { number: page, items, next, lastPage }: Page): void {
  if (page === 1 || items.length > 0 || next !== null) return
  const length = lastPage === null ? '' : ` (${counted(lastPage, 'page')})`
  log.info(
    { event: 'beyond_end', page },
    `page ${page} is beyond the end of the list${length}: nothing is there`,
  )
}
