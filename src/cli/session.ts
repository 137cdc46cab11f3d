import type { Logger } from 'pino'
import { type ApiOptions, createApi } from '../api/client.ts'
import type { HttpGet } from '../api/http.ts'
import type { Config, OrganizationConfig } from '../config/config.ts'
import { TokenFileError } from '../config/token-file.ts'
import { JobError, toKnownError, UsageError } from '../errors.ts'
import { createPings, type Pings } from '../ping/pings.ts'
import { alarmText } from '../report/status-text.ts'
import type { JobEvent } from '../sync/job.ts'
import type { Job, Observe, PageSource } from '../sync/types.ts'
import { USER_AGENT } from './configuration.ts'
import { createCredentials } from './credentials.ts'
import { type OpenMirror, openMirror } from './mirror.ts'
import { type Log, openLog } from './output/log.ts'
import { createProgress } from './output/progress.ts'
import { createReporter } from './output/reporter.ts'
import { assertMirror } from './place.ts'
import { createPublisher } from './publisher.ts'
import { openStatus } from './read-status.ts'
import { createRefreshPlan, type RefreshPlan } from './refresh-plan.ts'
import { createJobRunner, type JobRunner } from './run-jobs.ts'
import type { Invocation, Runtime } from './runtime.ts'
import type { ConfiguredJob } from './selection.ts'

// What a command works with: the mirror, the API, the runner of jobs, and those who are told.

/** The mirror and the API of a configuration. */
export interface Session extends OpenMirror {
  /** The pages of a job. Reads the token again; `refusal` reports one that cannot be read or is held. */
  source(job: ConfiguredJob): Promise<PageSource>
  refreshes: RefreshPlan
  /** The key of an organization's rate budget. */
  budgetOf(organization: Pick<OrganizationConfig, 'id'>): string
}

export interface SessionOptions {
  config: Config
  runtime: Runtime
  logger: Logger
  /** `--accept-address`: the mirror holds the lists of `api.baseUrl`, whatever address they were read from. */
  acceptAddress?: boolean | undefined
  /** Called after each request. */
  onAnswer?: ApiOptions['onAnswer']
  /** Replaces the network in a simulation. */
  exchange?: HttpGet
}

export async function openSession(options: SessionOptions): Promise<Session> {
  const { config, runtime, logger: log, acceptAddress, onAnswer, exchange } = options
  const { api, concurrency, retry, rateLimit, organizations } = config
  const mirror = await openMirror({ config, runtime, log, address: acceptAddress ? 'accept' : 'claim' })
  const { store, tokens, now } = mirror
  const shares = organizations.map(({ refresh }) => (refresh === false ? 0 : refresh.share))
  const rate = { ...rateLimit, refreshPercent: Math.max(0, ...shares) }
  const limits = { concurrency, retry, rate, budgets: tokens.budgets }
  const open = createApi({ ...runtime, ...api, ...limits, userAgent: USER_AGENT, now, onAnswer }, exchange)
  const { read, budgetOf } = createCredentials(config, tokens, now)
  const refreshes = createRefreshPlan({ config, store, budgetOf, now })
  return {
    ...mirror,
    refreshes,
    budgetOf,
    async source(job) {
      try {
        const source = open(job, await read(job.organization))
        refreshes.watch(job, source)
        return source
      } catch (error) {
        return closedSource(error)
      }
    },
  }
}

/**
 * With a held token, or a mirror that cannot be used, no run begins. If the token file cannot be read, a run begins and fails, so that
 * `sync_runs` shows it.
 */
function closedSource(error: unknown): PageSource {
  const isTokenMissing = error instanceof TokenFileError
  const known = isTokenMissing ? new JobError('CONFIGURATION', error.message) : toKnownError(error)
  return {
    refusal: async () => (isTokenMissing ? null : known),
    limit: () => null,
    fetchPage: () => Promise.reject(known),
  }
}

/** What a command that reads lists works with, and whom it tells. */
export interface CommandSession extends Session, JobRunner {
  logger: Logger
}

export interface CommandOptions extends Omit<SessionOptions, 'exchange'>, Log {
  /** `start`: the published file is made while it runs. Other commands make it when they close the session. */
  isService?: boolean
}

/** Opens the session of a command that reads lists. `close` ends all that belongs to it, the mirror last. */
export async function openCommand(options: CommandOptions): Promise<CommandSession> {
  const { config, runtime, logger, draw, isService = false } = options
  const session = await openSession(options)
  const pings = pingsOf(session, config, runtime, logger)
  const publisher = createPublisher({ config, runtime, logger, mirror: session, isService })
  const reporter = createReporter({ now: runtime.now, logger, onRefresh: () => publisher?.note() })
  const progress = draw && createProgress({ draw, runtime })
  const observe = (job: Job): Observe<JobEvent> => {
    const draws = progress?.observe(job)
    const logs = reporter.observe(job)
    return (event) => {
      // A list's line goes before its end is told.
      draws?.(event)
      logs(event)
    }
  }
  const clocked = { ...runtime, now: session.now }
  return {
    ...session,
    ...createJobRunner({ config, session, observe, pings, publisher, runtime: clocked }),
    logger,
    async close() {
      await publisher?.close()
      progress?.close()
      // They tell what the mirror says.
      await pings?.idle()
      await session.close()
    },
  }
}

/** Opens the session of a command, does `work` in it and closes it. */
export async function inSession<T>(
  runtime: Invocation,
  options: Pick<CommandOptions, 'config' | 'acceptAddress'>,
  work: (session: CommandSession) => Promise<T>,
): Promise<T> {
  const session = await openCommand({ ...options, runtime, ...(await openLog(runtime)) })
  try {
    return await work(session)
  } finally {
    await session.close()
  }
}

/**
 * Opens the mirror for a command that changes it and sends nothing, and does `work` with it. What is new is published at the end; `hasForgotten`: in
 * any case, since something is gone. Throws MirrorError where there is none yet.
 */
export async function inMirror<T>(
  runtime: Invocation,
  { config, hasForgotten = false }: { config: Config; hasForgotten?: boolean },
  work: (mirror: OpenMirror) => Promise<T>,
): Promise<T> {
  await assertMirror(config, runtime)
  const { logger } = await openLog(runtime)
  const mirror = await openMirror({ config, runtime, log: logger })
  const publisher = createPublisher({ config, runtime, logger, mirror, isService: false, hasForgotten })
  let isRefused = false
  try {
    return await work(mirror)
  } catch (error) {
    isRefused = error instanceof UsageError
    throw error
  } finally {
    // What was done before another error is published, too.
    if (!isRefused) await publisher?.close()
    await mirror.close()
  }
}

/** Their address is a secret, so that the log names only its host. */
function pingsOf(session: Session, config: Config, runtime: Runtime, logger: Logger): Pings | null {
  const address = config.ping()
  if (address === null) return null
  return createPings({
    address,
    userAgent: USER_AGENT,
    async verdict() {
      const status = await openStatus(session, config, runtime)
      return { isWell: status.check_exit_code === 0, text: alarmText(status) }
    },
    onEnd(kind, reason) {
      const fields = { ping: kind, host: new URL(address).host }
      if (reason === null) logger.debug({ event: 'ping_sent', ...fields }, 'ping sent')
      else logger.warn({ event: 'ping_lost', ...fields, reason }, 'a ping could not be delivered')
    },
    signal: runtime.signal,
  })
}
