import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { isWorthReporting } from '../report/progress.ts'
import type { JobObserver, JobResult } from '../sync/job.ts'
import { untrustedNote } from '../sync/removals.ts'
import type { Job, Page } from '../sync/types.ts'
import type { VerifyObserver, VerifyResult } from '../sync/verify.ts'
import { counted, printable } from '../text.ts'
import { allowedPerMinute, estimate } from './estimate.ts'
import { type JobProgress, progressLines } from './progress.ts'
import type { Runtime } from './runtime.ts'
import type { Terminal } from './terminal.ts'

/** A wait shorter than this is the normal spreading of requests, and not worth a line of the log. */
const TOLD_WAIT_MS = 5000

/** Tells people what jobs are doing: log lines for the record, and lines that are drawn over on a terminal. */
export interface Reporter {
  observe(job: Job): JobObserver
  observeVerifying(job: Job): VerifyObserver
  /** Takes the drawn lines away and stops drawing. */
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
  // Where nobody watches, a service that waits for its hour is not to wake five times a second.
  const stopDrawing = terminal.isWatched ? runtime.every(200, draw) : () => {}

  /** What a job tells on its way, whatever it is after; `pageMessage` is what the log calls a page that is done. */
  function watch(job: Job, pageMessage: string) {
    const names = { organization: job.organization.name, collection: job.collection.name }
    const log = logger.child(names)
    const progress: JobProgress = {
      label: `${names.organization} ${names.collection}`,
      startedAt: now(),
      pages: 0,
      page: 0,
      lastPage: null,
      rows: 0,
      pass: 1,
      allowedPerMinute: null,
      wait: null,
    }

    function tellEstimate(page: Page): void {
      const { requestsPerMinute, sharePercent } = config.rateLimit
      const msPerPage = now() - progress.startedAt
      const pace = { requestsPerMinute, sharePercent, announcedLimit: page.announcedLimit, msPerPage }
      progress.allowedPerMinute = allowedPerMinute(pace)
      if (page.next === null || page.lastPage === null) return
      const left = page.lastPage - page.number + 1
      log.info(
        {
          page: page.number,
          pages: page.lastPage,
          items: page.total,
          allowedPerMinute: allowedPerMinute(pace),
        },
        estimate(left, pace),
      )
    }

    const observer: Omit<JobObserver, 'onFinish'> = {
      onBusy(owner) {
        log.info({ owner }, 'another process is working on this; waiting for its end')
      },
      onStart(walk) {
        progress.startedAt = now()
        progress.rows = walk.rowsSeen
        running.add(progress)
        const { nextPage, pass } = walk.checkpoint
        if (walk.resumed) log.info({ walk: walk.id, page: nextPage, pass }, 'an interrupted walk goes on')
        else log.debug({ walk: walk.id, page: nextPage }, 'a walk begins')
      },
      onPage(page, saved, rowsInWalk) {
        if (progress.pages === 0) tellEstimate(page)
        progress.pages++
        progress.page = page.number
        progress.lastPage = page.lastPage
        progress.rows = rowsInWalk
        log.debug(
          { page: page.number, items: page.items.length, added: saved.added, changed: saved.changed },
          pageMessage,
        )
        if (page.number > 1 && page.items.length === 0 && page.next === null) {
          const length = page.lastPage === null ? '' : ` (${counted(page.lastPage, 'page')})`
          log.info(
            { page: page.number },
            `page ${page.number} is beyond the end of the list${length}: nothing is there`,
          )
        }
        for (const { level, message } of saved.notices) log[level](printable(message, 500))
      },
      onPassAgain(why, pass) {
        progress.pass = pass
        log.warn({ pass }, `the list moved, or does not add up, so it is read again: ${why}`)
      },
      // Pages are written while the next one is waited for, so that a page that is done ends no wait.
      onRequest() {
        progress.wait = null
      },
      onRetry(reason, delayMs) {
        progress.wait = { reason, until: now() + delayMs }
        log.warn({ delayMs }, `${reason}; trying again`)
      },
      onWait(reason, until) {
        progress.wait = { reason, until }
        const level = until - now() >= TOLD_WAIT_MS ? 'info' : 'debug'
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
    return {
      ...observer,
      onFinish(result) {
        end()
        tellFinish(log, result)
      },
    }
  }

  function observeVerifying(job: Job): VerifyObserver {
    const { log, observer, end } = watch(job, 'page compared')
    return {
      ...observer,
      onThrottled: () => {},
      onWaited: () => {},
      onFinish(result) {
        end()
        tellVerified(log, result)
      },
    }
  }

  function close(): void {
    stopDrawing()
    running.clear()
    draw()
  }

  return { observe, observeVerifying, close }
}

function tellVerified(log: Logger, { differences, error }: VerifyResult): void {
  if (!differences) {
    const level = error?.code === 'INTERRUPTED' ? 'warn' : 'error'
    log[level]({ error_code: error?.code, error_message: error?.message }, 'not verified')
    if (error?.code === 'INTERNAL') log.debug({ stack: error.stack }, 'where the unforeseen error came from')
    return
  }
  const { items, counts, moved, coverage } = differences
  log.info({ rows_seen: items, ...counts, moved, coverage }, 'verified')
}

function tellFinish(log: Logger, result: JobResult): void {
  const { run, walk, trigger, coverage, expectedMissed, error, held, untrusted } = result
  const told = error ?? held
  const failure = told ? { error_code: told.code, error_message: told.message } : {}
  const level = error ? (error.code === 'INTERRUPTED' ? 'warn' : 'error') : held ? 'warn' : 'info'
  if (!run) {
    log[level](
      { trigger, ...failure },
      walk ? 'run ended, and the mirror cannot say what it did' : 'run not begun',
    )
    return
  }
  log[level](
    {
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
      ...failure,
    },
    'run finished',
  )
  if (untrusted) log.warn(untrustedNote(untrusted))
  if (error?.code === 'INTERNAL') log.debug({ stack: error.stack }, 'where the unforeseen error came from')
}
