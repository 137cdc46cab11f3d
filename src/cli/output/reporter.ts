import type { Logger } from 'pino'
import type { Config } from '../../config/config.ts'
import type { JobObserver, JobResult } from '../../sync/job.ts'
import type { Job, Page } from '../../sync/types.ts'
import type { VerifyObserver, VerifyResult } from '../../sync/verify/verify.ts'
import { counted, printable } from '../../text.ts'
import type { Runtime } from '../runtime.ts'
import { allowedPerMinute, estimate } from './estimate.ts'
import { type JobProgress, newProgress, progressLines } from './progress.ts'
import { logRefresh, logRun, logVerified } from './run-lines.ts'
import type { Terminal } from './terminal.ts'

/** A shorter wait is the normal spreading of requests, and logged for debugging only. */
const LOGGED_WAIT_MS = 5000

/** Reports what jobs do: as log lines, and on a terminal as progress lines, which it draws again and again. */
export interface Reporter {
  observe(job: Job): JobObserver
  observeVerifying(job: Job): VerifyObserver
  /** Clears the progress lines and stops drawing. */
  close(): void
}

export interface ReporterOptions {
  config: Pick<Config, 'rateLimit'>
  runtime: Pick<Runtime, 'now' | 'every'>
  logger: Logger
  terminal: Terminal
}

export function createReporter({ config, runtime, logger, terminal }: ReporterOptions): Reporter {
  const { now } = runtime
  const running = new Set<JobProgress>()
  const draw = () => terminal.draw(progressLines([...running], terminal.height(), now()))
  // Without a terminal, a service that waits for its hour must not wake five times a second.
  const stopDrawing = terminal.isWatched ? runtime.every(200, draw) : () => {}

  function logEstimate(log: Logger, page: Page, progress: JobProgress): void {
    const { requestsPerMinute, sharePercent } = config.rateLimit
    const msPerPage = now() - progress.startedAt
    const pace = { requestsPerMinute, sharePercent, announcedLimit: page.announcedLimit, msPerPage }
    const allowed = allowedPerMinute(pace)
    progress.allowedPerMinute = allowed
    if (page.next === null || page.lastPage === null) return
    const { number, lastPage: pages, total: items } = page
    const numbers = { page: number, pages, items, allowedPerMinute: allowed, allowed_per_minute: allowed }
    log.info({ event: 'estimate', ...numbers }, estimate(pages - number + 1, pace))
  }

  /** What `sync` and `verify` report of a job. `pageMessage` is the log's message of a page. */
  function watch(job: Job, pageMessage: 'page saved' | 'page compared') {
    const { organization, collection } = job
    const log = logger.child({ organization: organization.name, collection: collection.name })
    const progress = newProgress(`${organization.name} ${collection.name}`, now())
    const begunAt = now()
    let walkId: number | null = null

    const observer: Omit<JobObserver, 'onFinish'> = {
      onBusy(owner) {
        log.info({ event: 'list_busy', owner }, 'another process is working on this; waiting for its end')
      },
      onStart({ id: walk, checkpoint, rowsSeen, resumed }) {
        walkId = walk
        progress.startedAt = now()
        progress.rows = rowsSeen
        running.add(progress)
        const { nextPage: page, pass } = checkpoint
        if (resumed)
          log.info(
            { event: 'walk_resumed', walk, walk_id: walk, page, pass },
            'an interrupted walk continues',
          )
        else log.debug({ event: 'walk_started', walk, walk_id: walk, page }, 'a walk begins')
      },
      onPage(page, { added, changed, notices }, rowsInWalk) {
        if (progress.pages === 0) logEstimate(log, page, progress)
        progress.pages++
        progress.page = page.number
        progress.lastPage = page.lastPage
        progress.rows = rowsInWalk
        const event = pageMessage === 'page saved' ? 'page_saved' : 'page_compared'
        log.debug(
          { event, walk_id: walkId, page: page.number, items: page.items.length, added, changed },
          pageMessage,
        )
        logBeyondEnd(log, page)
        for (const { level, message } of notices)
          log[level]({ event: 'columns_changed', page: page.number }, printable(message, 500))
      },
      onRefresh: (result) => logRefresh(log, job, result),
      onPassAgain(why, pass) {
        progress.pass = pass
        log.warn(
          { event: 'pass_repeated', walk_id: walkId, pass },
          `the list moved, or does not add up, so it is read again: ${why}`,
        )
      },
      // A request ends the wait. A page does not: it is written while the next one is waited for.
      onRequest() {
        progress.wait = null
      },
      onRetry(reason, delayMs) {
        progress.wait = { reason, until: now() + delayMs }
        log.warn({ event: 'request_retried', delayMs, delay_ms: delayMs }, `${reason}; trying again`)
      },
      onWait(reason, until) {
        progress.wait = { reason, until }
        const level = until - now() >= LOGGED_WAIT_MS ? 'info' : 'debug'
        log[level]({ event: 'waiting', reason, until: new Date(until).toISOString() }, 'waiting')
      },
    }
    const end = () => {
      running.delete(progress)
      draw()
    }
    return { log, observer, end, spent: () => now() - begunAt }
  }

  function observe(job: Job): JobObserver {
    const { log, observer, end, spent } = watch(job, 'page saved')
    const onFinish = (result: JobResult) => {
      end()
      // `onRefresh` has reported it.
      if (!result.isRefreshed) logRun(log, result, spent())
    }
    return { ...observer, onFinish }
  }

  function observeVerifying(job: Job): VerifyObserver {
    const { log, observer, end, spent } = watch(job, 'page compared')
    const onFinish = (result: VerifyResult) => {
      end()
      logVerified(log, result, spent())
    }
    return { ...observer, onThrottled: () => {}, onWaited: () => {}, onFinish }
  }

  function close(): void {
    stopDrawing()
    running.clear()
    draw()
  }

  return { observe, observeVerifying, close }
}

function logBeyondEnd(log: Logger, { number: page, items, next, lastPage }: Page): void {
  if (page === 1 || items.length > 0 || next !== null) return
  const length = lastPage === null ? '' : ` (${counted(lastPage, 'page')})`
  log.info(
    { event: 'beyond_end', page },
    `page ${page} is beyond the end of the list${length}: nothing is there`,
  )
}
