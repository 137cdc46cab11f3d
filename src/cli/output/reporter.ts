import type { Logger } from 'pino'
import { allowedPerMinute } from '../../api/rate/budget.ts'
import type { Config } from '../../config/config.ts'
import type { ErrorCode } from '../../errors.ts'
import type { JobEvent } from '../../sync/job.ts'
import { ownerName, workText } from '../../sync/run.ts'
import type { Job, Notice, Observe } from '../../sync/types.ts'
import type { VerifyEvent } from '../../sync/verify.ts'
import { counted, jobName, printable } from '../../text.ts'
import type { Runtime } from '../runtime.ts'
import type { Log } from './log.ts'
import { type Progress, progressLines } from './progress.ts'
import { logRefresh, logRun, logVerified } from './run-lines.ts'

export interface Reporter {
  /** Gets what happens while a job is synced or verified. */
  observe(job: Job): Observe<JobEvent | VerifyEvent>
  close(): void
}

export interface ReporterOptions extends Log {
  config: Pick<Config, 'rateLimit'>
  runtime: Pick<Runtime, 'now' | 'every'>
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

/** Reports what jobs do: as log lines, and on a terminal as a line a list, too. */
export function createReporter({
  config,
  runtime,
  logger,
  draw,
  budgetOf,
  onRefresh,
}: ReporterOptions): Reporter {
  const { now, every } = runtime
  const running = new Set<Progress>()
  const toldAt = new Map<string, number>()
  const redraw = () => draw?.(running.size === 0 ? [] : progressLines([...running], now()))
  const stopDrawing = draw ? every(DRAW_EVERY_MS, redraw) : () => {}

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
    const observedAt = now()
    let walkId: number | null = null
    const list: Progress = {
      label: printable(jobName(job), 60),
      budget: budgetOf(job),
      begunAt: null,
      pages: 0,
      page: 0,
      lastPage: null,
      rows: 0,
      waitedMs: 0,
      wait: null,
      perMinute: null,
      owner: null,
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
          const { number, items, lastPage, next, announcedLimit } = page
          Object.assign(list, { page: number, lastPage, rows: itemsInWalk })
          list.pages++
          list.perMinute = allowedPerMinute(announcedLimit, config.rateLimit)
          const fields = { walk_id: walkId, page: number, items: items.length }
          const { added, changed, notices } = result
          log.debug({ event: 'page_read', ...fields, added, changed }, 'page read')
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
          log.warn({ event: 'pass_repeated', walk_id: walkId, pass: event.pass }, why)
          return
        }
        case 'refresh':
          logRefresh(log, event.result)
          onRefresh?.()
          return
        case 'finish': {
          const { result } = event
          ended()
          // A refresh is reported already.
          if (!result.isInstead) logRun(log, result, at - observedAt, isKnown('end', result.error?.code))
          return
        }
        case 'verified':
          ended()
          logVerified(log, event.result, at - observedAt)
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

function logNotices(log: Logger, page: number, notices: readonly Notice[]): void {
  for (const { event = 'columns_changed', level, message } of notices)
    log[level]({ event, page }, printable(message, 500))
}
