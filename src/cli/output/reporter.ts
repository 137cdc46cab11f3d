import type { Logger } from 'pino'
import { allowedPerMinute } from '../../api/rate/decision.ts'
import type { Config } from '../../config/config.ts'
import type { KnownError } from '../../errors.ts'
import type { JobObserver, JobResult } from '../../sync/job.ts'
import { leftOf, type OwnerWork, ownerName, workText } from '../../sync/lease.ts'
import type { RefreshResult } from '../../sync/refresh/refresher.ts'
import type { Job, Notice, Page } from '../../sync/types.ts'
import type { VerifyObserver, VerifyResult } from '../../sync/verify.ts'
import { counted, jobName, printable } from '../../text.ts'
import type { Runtime } from '../runtime.ts'
import { budgetNow, ENOUGH_ANSWERS, estimate, type Pace } from './estimate.ts'
import { createBoard } from './progress/board.ts'
import {
  type JobProgress,
  msPerAnswer,
  newProgress,
  noteBusy,
  notePage,
  notePass,
  noteRequest,
  noteStart,
  noteWait,
  othersOf,
  pagesLeft,
} from './progress/job-progress.ts'
import { addList, logRefresh, logRun, logTotals, logVerified, newTotals } from './run-lines.ts'
import type { Terminal } from './terminal.ts'

/** A shorter wait is the normal spreading of requests, and logged for debugging only. */
const LOGGED_WAIT_MS = 5000

/** How often a line of the log says that a job is still waited for. */
const BUSY_TOLD_EVERY_MS = 300_000

/** A shorter estimate is of no use to anybody. */
const LONG_MS = 60_000

/** Reports what jobs do: as log lines, and on a terminal as progress lines, which it draws again and again. */
export interface Reporter {
  observe(job: Job): JobObserver
  observeVerifying(job: Job): VerifyObserver
  /** Shows this line while no job runs. */
  showAtRest(text: () => string): void
  /** On a terminal: a last line with the sums of the command. */
  summarize(): void
  /** Clears the progress lines and stops drawing. */
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

export function createReporter({
  config,
  runtime,
  logger,
  terminal,
  budgetOf,
  onRefresh,
}: ReporterOptions): Reporter {
  const { now } = runtime
  const begunAt = now()
  const totals = newTotals()
  const board = createBoard(runtime, terminal)

  function paceOf(progress: JobProgress, allowed: number | null): Pace {
    const msPerPage = msPerAnswer(progress) ?? 0
    const others = othersOf(progress, board.jobs()).map(pagesLeft)
    return { allowed, budget: progress.budgetNow, msPerPage, answers: progress.answers, others }
  }

  /** What is known of the budget after an answer. */
  function noteBudget(page: Page, progress: JobProgress): void {
    const all = [progress, ...othersOf(progress, board.jobs())]
    const sent = all.reduce((sum, { requests }) => sum + requests, 0)
    progress.budgetNow = budgetNow(page, config.rateLimit, sent)
  }

  /** After the first answer by the rate limit; after a few by the server's speed, where that decides. */
  function logEstimate(log: Logger, page: Page, progress: JobProgress): void {
    const { answers } = progress
    if (answers !== 1 && answers !== ENOUGH_ANSWERS) return
    const allowed = allowedPerMinute(page.announcedLimit, config.rateLimit)
    progress.allowedPerMinute = allowed
    if (page.next === null || page.lastPage === null) return
    const known = estimate(page.lastPage - progress.furthest + 1, paceOf(progress, allowed))
    if (known === null || (answers > 1 && known.by === 'budget')) return
    const { number, lastPage: pages, total: items } = page
    const numbers = { page: number, pages, items, allowed_per_minute: allowed }
    log[known.ms < LONG_MS ? 'debug' : 'info']({ event: 'estimate', ...numbers }, known.text)
  }

  /** What `sync` and `verify` report of a job. `pageMessage` is the log's message of a page. */
  function watch(job: Job, pageMessage: 'page saved' | 'page compared') {
    const { organization, collection } = job
    const log = logger.child({ organization: organization.name, collection: collection.name })
    const progress = newProgress(jobName(job), budgetOf(job))
    const observedAt = now()
    let walkId: number | null = null
    /** Who has the job, and when that was logged last. */
    let busy: { owner: string; at: number } | null = null
    board.add(progress)

    const observer: Omit<JobObserver, 'onFinish'> = {
      onBusy(owner, work) {
        const at = now()
        noteBusy(progress, ownerName(owner, work), leftOf(work, at))
        if (busy?.owner === owner && at - busy.at < BUSY_TOLD_EVERY_MS) return
        busy = { owner, at }
        logBusy(log, owner, work, at)
      },
      onStart({ id: walk, checkpoint, rowsSeen, resumed }) {
        walkId = walk
        const { nextPage: page, pass } = checkpoint
        noteStart(progress, page, pass, rowsSeen)
        if (resumed)
          log.info({ event: 'walk_resumed', walk_id: walk, page, pass }, 'an interrupted walk continues')
        else log.debug({ event: 'walk_started', walk_id: walk, page }, 'a walk begins')
      },
      onPage(page, { added, changed, notices }, rowsInWalk) {
        notePage(progress, page, rowsInWalk, now())
        noteBudget(page, progress)
        logEstimate(log, page, progress)
        const event = pageMessage === 'page saved' ? 'page_saved' : 'page_compared'
        log.debug(
          { event, walk_id: walkId, page: page.number, items: page.items.length, added, changed },
          pageMessage,
        )
        logBeyondEnd(log, page)
        logNotices(log, page.number, notices)
      },
      onNotices: (page, notices) => logNotices(log, page, notices),
      onRefresh(result) {
        logRefresh(log, job, result)
        refreshed = result.run
        onRefresh?.()
      },
      onPassAgain(why, pass) {
        notePass(progress, pass)
        log.warn(
          { event: 'pass_repeated', walk_id: walkId, pass },
          `the list moved, or does not add up, so it is read again: ${why}`,
        )
      },
      onRequest: () => noteRequest(progress, now()),
      onRetry(reason, delayMs) {
        noteWait(progress, reason, now() + delayMs, now())
        log.warn({ event: 'request_retried', delay_ms: delayMs }, `${reason}; trying again`)
      },
      onWait(reason, until) {
        noteWait(progress, reason, until, now())
        const level = until - now() >= LOGGED_WAIT_MS ? 'info' : 'debug'
        log[level]({ event: 'waiting', reason, until: new Date(until).toISOString() }, 'waiting')
      },
    }
    /** The rows of a job that was refreshed instead of walked. */
    let refreshed: RefreshResult['run'] | null = null
    const end = (error: KnownError | null, run: JobResult['run']) => {
      board.end(progress)
      addList(totals, error, progress.requests, run ?? refreshed)
    }
    return { log, observer, end, spent: () => now() - observedAt }
  }

  function observe(job: Job): JobObserver {
    const { log, observer, end, spent } = watch(job, 'page saved')
    const onFinish = (result: JobResult) => {
      end(result.error ?? result.heldBack, result.run)
      // `onRefresh` has reported it.
      if (!result.isInstead) logRun(log, result, spent())
    }
    return { ...observer, onFinish }
  }

  function observeVerifying(job: Job): VerifyObserver {
    const { log, observer, end, spent } = watch(job, 'page compared')
    const onFinish = (result: VerifyResult) => {
      end(result.error, null)
      logVerified(log, result, spent())
    }
    return { ...observer, onThrottled: () => {}, onWaited: () => {}, onFinish }
  }

  return {
    observe,
    observeVerifying,
    showAtRest: board.showAtRest,
    summarize() {
      if (terminal.isWatched) logTotals(logger, totals, now() - begunAt)
    },
    close: board.close,
  }
}

function logBusy(log: Logger, owner: string, work: OwnerWork | null, at: number): void {
  const fields = {
    event: 'list_busy',
    owner,
    trigger: work?.run?.trigger,
    left_ms: leftOf(work, at) ?? undefined,
  }
  log.info(fields, `${ownerName(owner, work)} ${workText(work, at)}; waiting for its end`)
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
