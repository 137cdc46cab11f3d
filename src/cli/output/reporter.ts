import type { Logger } from 'pino'
import type { Config } from '../../config/config.ts'
import type { KnownError } from '../../errors.ts'
import type { JobEvent, JobResult } from '../../sync/job.ts'
import { type OwnerWork, ownerName, workText } from '../../sync/owner-work.ts'
import type { RefreshResult } from '../../sync/refresh/refresher.ts'
import type { Job, Notice, Observe, Page } from '../../sync/types.ts'
import type { VerifyEvent } from '../../sync/verify.ts'
import { counted, jobName, printable } from '../../text.ts'
import type { Runtime } from '../runtime.ts'
import { createBoard } from './board.ts'
import { ENOUGH_ANSWERS, estimate, type JobProgress, newProgress, noteBudget, noteEvent } from './progress.ts'
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

/** Reports what jobs do: as log lines, and on a terminal as progress lines, too (`board.ts`). */
export function createReporter({ config, runtime, logger, terminal, budgetOf, onRefresh }: ReporterOptions) {
  const { now } = runtime
  const begunAt = now()
  const totals = newTotals()
  const board = createBoard(runtime, terminal)

  /** Logs the estimate after the first answer, by the rate limit; and after a few, by the server's speed if that is slower. */
  function logEstimate(log: Logger, page: Page, progress: JobProgress): void {
    const { answers } = progress
    if ((answers !== 1 && answers !== ENOUGH_ANSWERS) || page.next === null) return
    const known = estimate(progress, board.jobs(), now())
    if (known === null || (answers > 1 && known.by === 'budget')) return
    const { number, lastPage: pages, total: items } = page
    const numbers = { page: number, pages, items, allowed_per_minute: progress.allowedPerMinute }
    log[known.ms < LONG_MS ? 'debug' : 'info']({ event: 'estimate', ...numbers }, known.text)
  }

  /** What `sync` and `verify` report of a job. */
  function watch(job: Job, isVerify: boolean): Observe<JobEvent | VerifyEvent> {
    const { organization, collection } = job
    const log = logger.child({ organization: organization.name, collection: collection.name })
    const progress = newProgress(jobName(job), budgetOf(job))
    const observedAt = now()
    let walkId: number | null = null
    /** Who has the job, and when that was logged last. */
    let busy: { owner: string; at: number } | null = null
    board.add(progress)

    /** The rows of a job that was refreshed instead of walked. */
    let refreshed: RefreshResult['run'] | null = null
    const end = (error: KnownError | null, run: JobResult['run']) => {
      board.end(progress)
      addList(totals, error, progress.requests, run ?? refreshed)
    }

    function observe(event: JobEvent | VerifyEvent): void {
      const at = now()
      noteEvent(progress, event, at)
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
          noteBudget(progress, board.jobs(), page, config.rateLimit, at)
          logEstimate(log, page, progress)
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
          log.warn({ event: 'request_retried', delay_ms: event.delayMs }, `${event.reason}; trying again`)
          return
        case 'wait': {
          const { reason, until } = event
          const level = until - at >= LOGGED_WAIT_MS ? 'info' : 'debug'
          log[level]({ event: 'waiting', reason, until: new Date(until).toISOString() }, 'waiting')
          return
        }
        case 'finish': {
          const { result } = event
          end(result.error ?? result.heldBack, result.run)
          // A refresh is reported already.
          if (!result.isInstead) logRun(log, result, at - observedAt)
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
    showAtRest: board.showAtRest,
    /** On a terminal: a last line with the sums of the command. */
    summarize(): void {
      if (terminal.isWatched) logTotals(logger, totals, now() - begunAt)
    },
    close: board.close,
  }
}

function logBusy(log: Logger, owner: string, work: OwnerWork | null): void {
  const fields = { event: 'list_busy', owner, trigger: work?.trigger ?? undefined }
  log.info(fields, `${ownerName(owner, work)} ${workText(work)}; waiting for its end`)
}

function logNotices(log: Logger, page: number, notices: readonly Notice[]): void {
  for (const { level, message } of notices)
    log[level]({ event: 'columns_changed', page }, printable(message, 500))
}

function logBeyondEnd(log: Logger, { number: page, items, next, lastPage }: Page): void {
  if (page === 1 || items.length > 0 || next !== null) return
  const length = lastPage === null ? '' : ` (${counted(lastPage, 'page')})`
  log.info(
    { event: 'beyond_end', page },
    `page ${page} is beyond the end of the list${length}: nothing is there`,
  )
}
