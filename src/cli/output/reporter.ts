import type { Logger } from 'pino'
import type { Config } from '../../config/config.ts'
import type { KnownError } from '../../errors.ts'
import { isWorthReporting } from '../../report/progress.ts'
import type { JobObserver, JobResult } from '../../sync/job.ts'
import type { RefreshResult } from '../../sync/refresh/refresher.ts'
import { isAlwaysChanging } from '../../sync/refresh/state.ts'
import { untrustedNote } from '../../sync/removals.ts'
import type { Job, Page } from '../../sync/types.ts'
import type { VerifyObserver, VerifyResult } from '../../sync/verify/verify.ts'
import { counted, printable } from '../../text.ts'
import type { Runtime } from '../runtime.ts'
import { allowedPerMinute, estimate } from './estimate.ts'
import { type JobProgress, newProgress, progressLines } from './progress.ts'
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
    log.info({ page: number, pages, items, allowedPerMinute: allowed }, estimate(pages - number + 1, pace))
  }

  /** What `sync` and `verify` report of a job. `pageMessage` is the log's message of a page. */
  function watch(job: Job, pageMessage: string) {
    const { organization, collection } = job
    const log = logger.child({ organization: organization.name, collection: collection.name })
    const progress = newProgress(`${organization.name} ${collection.name}`, now())

    const observer: Omit<JobObserver, 'onFinish'> = {
      onBusy(owner) {
        log.info({ owner }, 'another process is working on this; waiting for its end')
      },
      onStart({ id: walk, checkpoint, rowsSeen, resumed }) {
        progress.startedAt = now()
        progress.rows = rowsSeen
        running.add(progress)
        const { nextPage: page, pass } = checkpoint
        if (resumed) log.info({ walk, page, pass }, 'an interrupted walk continues')
        else log.debug({ walk, page }, 'a walk begins')
      },
      onPage(page, { added, changed, notices }, rowsInWalk) {
        if (progress.pages === 0) logEstimate(log, page, progress)
        progress.pages++
        progress.page = page.number
        progress.lastPage = page.lastPage
        progress.rows = rowsInWalk
        log.debug({ page: page.number, items: page.items.length, added, changed }, pageMessage)
        logBeyondEnd(log, page)
        for (const { level, message } of notices) log[level](printable(message, 500))
      },
      onRefresh: (result) => logRefresh(log, job, result),
      onPassAgain(why, pass) {
        progress.pass = pass
        log.warn({ pass }, `the list moved, or does not add up, so it is read again: ${why}`)
      },
      // A request ends the wait. A page does not: it is written while the next one is waited for.
      onRequest() {
        progress.wait = null
      },
      onRetry(reason, delayMs) {
        progress.wait = { reason, until: now() + delayMs }
        log.warn({ delayMs }, `${reason}; trying again`)
      },
      onWait(reason, until) {
        progress.wait = { reason, until }
        const level = until - now() >= LOGGED_WAIT_MS ? 'info' : 'debug'
        log[level]({ reason, until: new Date(until).toISOString() }, 'waiting')
      },
    }
    const end = () => {
      running.delete(progress)
      draw()
    }
    return { log, observer, end }
  }

  function observe(job: Job): JobObserver {
    const { log, observer, end } = watch(job, 'page saved')
    const onFinish = (result: JobResult) => {
      end()
      // `onRefresh` has reported it.
      if (!result.isRefreshed) logRun(log, result)
    }
    return { ...observer, onFinish }
  }

  function observeVerifying(job: Job): VerifyObserver {
    const { log, observer, end } = watch(job, 'page compared')
    const onFinish = (result: VerifyResult) => {
      end()
      logVerified(log, result)
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
  log.info({ page }, `page ${page} is beyond the end of the list${length}: nothing is there`)
}

function logVerified(log: Logger, { differences, error }: VerifyResult): void {
  if (differences) {
    const { items, counts, isCut, moved, coverage } = differences
    log.info(
      { rows_seen: items, ...counts, ...(isCut ? { at_least: true } : {}), moved, coverage },
      'verified',
    )
    return
  }
  log[levelOf(error)](failure(error), 'not verified')
  logStack(log, error)
}

function logRun(log: Logger, result: JobResult): void {
  const { run, walk, trigger, coverage, expectedMissed, error, held, untrusted } = result
  const level = error ? levelOf(error) : held ? 'warn' : 'info'
  if (!run) {
    const message = walk ? 'run ended, and the mirror cannot say what it did' : 'run not begun'
    log[level]({ trigger, ...failure(error ?? held) }, message)
    return
  }
  const fields = {
    trigger,
    status: error ? (error.code === 'INTERRUPTED' ? 'interrupted' : 'failed') : 'succeeded',
    walk_id: walk?.id,
    first_page: walk?.checkpoint.nextPage,
    pages: run.pages,
    rows_seen: run.rowsSeen,
    rows_added: run.rowsAdded,
    rows_changed: run.rowsChanged,
    rows_removed: run.rowsRemoved,
    requests: run.requests,
    retries: run.retries,
    rate_limit_hits: run.rateLimitHits,
    rate_limit_wait_ms: run.rateLimitWaitMs,
    coverage,
    ...(isWorthReporting(expectedMissed) ? { expected_missed: expectedMissed } : {}),
    ...failure(error ?? held),
  }
  log[level](fields, 'run finished')
  if (untrusted) log.warn(untrustedNote(untrusted))
  logStack(log, error)
}

function logRefresh(log: Logger, { collection }: Job, { run, kept, isAsked, error }: RefreshResult): void {
  const { pages, rowsAdded, rowsChanged, requests } = run
  const isNews = isAsked || rowsAdded + rowsChanged > 0
  const fields = {
    pages,
    rows_seen: run.rowsSeen,
    rows_added: rowsAdded,
    rows_changed: rowsChanged,
    requests,
    rate_limit_wait_ms: run.rateLimitWaitMs,
    fresh_as_of: new Date(kept.freshAsOf).toISOString(),
    newest: kept.newest,
    ...failure(error),
  }
  // Hundreds of refreshes a day find nothing.
  log[error ? levelOf(error) : isNews ? 'info' : 'debug'](fields, 'refresh finished')
  if (!error && isAlwaysChanging(kept.state))
    log.warn(
      'the last refreshes met 1,000 changed rows in a row and stopped there, so fresh_as_of stays until the next full ' +
        `walk; a field that changes in every answer belongs into collections.${collection.name}.ignore`,
    )
  logStack(log, error)
}

function levelOf(error: KnownError | null): 'warn' | 'error' {
  return error?.code === 'INTERRUPTED' ? 'warn' : 'error'
}

function failure(error: KnownError | null): object {
  return error ? { error_code: error.code, error_message: error.message } : {}
}

function logStack(log: Logger, error: KnownError | null): void {
  if (error?.code === 'INTERNAL') log.debug({ stack: error.stack }, 'where the unforeseen error came from')
}
