import type { Logger } from 'pino'
import type { Config } from '../../config/config.ts'
import type { ErrorCode, KnownError } from '../../errors.ts'
import type { JobEvent, JobResult } from '../../sync/job.ts'
import { type OwnerWork, ownerName, workText } from '../../sync/owner-work.ts'
import type { RefreshResult } from '../../sync/refresh/refresher.ts'
import type { Job, Notice, Observe, Page } from '../../sync/types.ts'
import type { VerifyEvent } from '../../sync/verify.ts'
import { counted, jobName, printable } from '../../text.ts'
import type { Runtime } from '../runtime.ts'
import { estimateText, leftOf, newProgress, noteEvent, type Progress, progressLines } from './progress.ts'
import { addList, logRefresh, logRun, logTotals, logVerified, newTotals } from './run-lines.ts'
import type { Terminal } from './terminal.ts'

/** A shorter wait only spreads requests as usual, and is logged for debugging only. */
const LOGGED_WAIT_MS = 5000

/** How often a line of the log says that a job is still waited for. */
const BUSY_TOLD_EVERY_MS = 300_000

/** A shorter estimate is logged for debugging only. */
const LONG_MS = 60_000

export type Reporter = ReturnType<typeof createReporter>

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

/** Faults that all lists have at once: told of one, not of each. */
const SHARED: ReadonlySet<ErrorCode> = new Set(['NETWORK', 'TIMEOUT', 'SERVER_ERROR', 'DATABASE'])

const TOLD_AGAIN_MS = 300_000

/** Reports what jobs do: as log lines, and on a terminal as progress lines, too. */
export function createReporter({ config, runtime, logger, terminal, budgetOf, onRefresh }: ReporterOptions) {
  const { now, every } = runtime
  const begunAt = now()
  const totals = newTotals()
  const running = new Set<Progress>()
  const draw = () => {
    if (terminal.isWatched) terminal.draw(running.size === 0 ? [] : progressLines([...running], now()))
  }
  const stopDrawing = terminal.isWatched ? every(DRAW_EVERY_MS, draw) : () => {}
  const toldAt = new Map<string, number>()

  /** Whether such a fault was told lately, of any list; else it is now. */
  function isKnown(event: 'retry' | 'end', code: ErrorCode | undefined): boolean {
    if (code === undefined || !SHARED.has(code)) return false
    const [key, at] = [`${event} ${code}`, now()]
    if (Math.abs(at - (toldAt.get(key) ?? Number.NEGATIVE_INFINITY)) < TOLD_AGAIN_MS) return true
    toldAt.set(key, at)
    return false
  }

  /** Says how long a list will take, after its first answer or as soon as that is known. Returns whether it is said. */
  function logEstimate(log: Logger, page: Page, progress: Progress): boolean {
    const text = page.next === null ? null : estimateText(progress, [...running], now())
    if (text === null) return false
    const ms = leftOf(progress, [...running], now()) ?? 0
    const fields = { event: 'estimate', page: page.number, pages: page.lastPage, left_ms: ms }
    log[ms < LONG_MS ? 'debug' : 'info'](fields, text)
    return true
  }

  /** What `sync` and `verify` report of a job. */
  function watch(job: Job, isVerify: boolean): Observe<JobEvent | VerifyEvent> {
    const { organization, collection } = job
    const log = logger.child({ organization: organization.name, collection: collection.name })
    const progress = newProgress(jobName(job), budgetOf(job))
    const observedAt = now()
    let walkId: number | null = null
    let isEstimated = false
    /** Who has the job, and when that was logged last. */
    let busy: { owner: string; at: number } | null = null
    running.add(progress)
    draw()

    /** The rows of a job that was refreshed instead of walked. */
    let refreshed: RefreshResult['run'] | null = null
    const end = (error: KnownError | null, run: JobResult['run']) => {
      running.delete(progress)
      draw()
      addList(totals, error, progress.requests, run ?? refreshed)
    }

    function observe(event: JobEvent | VerifyEvent): void {
      const at = now()
      noteEvent(progress, event, at, config.rateLimit)
      switch (event.kind) {
        case 'busy': {
          const { owner, work } = event
          if (busy?.owner === owner && at - busy.at < BUSY_TOLD_EVERY_MS) return
          busy = { owner, at }
          logBusy(log, owner, work)
          return
        }
        case 'start': {
          const { id, checkpoint, resumed } = event.walk
          const { nextPage: page, pass } = checkpoint
          walkId = id
          if (resumed)
            log.info({ event: 'walk_resumed', walk_id: id, page, pass }, 'an interrupted walk continues')
          else log.debug({ event: 'walk_started', walk_id: id, page }, 'a walk begins')
          return
        }
        case 'page': {
          const { page, result } = event
          const { added, changed, notices } = result
          if (!isEstimated) isEstimated = logEstimate(log, page, progress)
          const items = page.items.length
          const fields = { walk_id: walkId, page: page.number, items, added, changed }
          if (isVerify) log.debug({ event: 'page_compared', ...fields }, 'page compared')
          else log.debug({ event: 'page_saved', ...fields }, 'page saved')
          logBeyondEnd(log, page)
          logNotices(log, page.number, notices)
          return
        }
        case 'notices':
          logNotices(log, event.page, event.notices)
          return
        case 'refresh':
          logRefresh(log, job, event.result)
          refreshed = event.result.run
          onRefresh?.()
          return
        case 'pass':
          log.warn(
            { event: 'pass_repeated', walk_id: walkId, pass: event.pass },
            `the list moved, or does not add up, so it is read again: ${event.why}`,
          )
          return
        case 'retry':
          log[isKnown('retry', event.code) ? 'debug' : 'warn'](
            { event: 'request_retried', error_code: event.code, delay_ms: event.delayMs },
            `${event.reason}; trying again`,
          )
          return
        case 'wait': {
          const { reason, until } = event
          const level = until - at >= LOGGED_WAIT_MS ? 'info' : 'debug'
          const time = new Date(until).toISOString()
          log[level]({ event: 'waiting', reason, until: time }, `waiting until ${time}: ${reason}`)
          return
        }
        case 'finish': {
          const { result } = event
          end(result.error ?? result.heldBack, result.run)
          // A refresh is reported already.
          if (!result.isInstead) logRun(log, result, at - observedAt, isKnown('end', result.error?.code))
          return
        }
        case 'request':
        case 'throttled':
        case 'waited':
          // The line of the run has the sums of these.
          return
        case 'verified':
          end(event.result.error, null)
          logVerified(log, event.result, at - observedAt)
      }
    }
    return observe
  }

  return {
    observe: (job: Job): Observe<JobEvent> => watch(job, false),
    observeVerifying: (job: Job): Observe<VerifyEvent> => watch(job, true),
    /** On a terminal: a last line with the sums of the command. */
    summarize(): void {
      if (terminal.isWatched) logTotals(logger, totals, now() - begunAt)
    },
    close(): void {
      stopDrawing()
      terminal.close()
    },
  }
}

function logBusy(log: Logger, owner: string, work: OwnerWork | null): void {
  const fields = { event: 'list_busy', owner, trigger: work?.trigger ?? undefined }
  log.info(fields, `${ownerName(owner, work)} ${workText(work)}; waiting for its end`)
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
