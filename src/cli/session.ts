import type { Logger } from 'pino'
import { type ApiOptions, createApi } from '../api/client.ts'
import type { HttpGet } from '../api/http.ts'
import type { Config } from '../config/config.ts'
import type { OrganizationConfig } from '../config/organizations.ts'
import { TokenFileError } from '../config/token-file.ts'
import { JobError, toKnownError } from '../errors.ts'
import type { Job, PageSource } from '../sync/types.ts'
import { USER_AGENT } from './config-file.ts'
import { pingsOf } from './configured-pings.ts'
import { createCredentialsReader, fingerprintOf } from './credentials.ts'
import { kindOf, type OpenMirror } from './mirror.ts'
import { createLogger, loggerOptions } from './output/log.ts'
import { createReporter, type Reporter } from './output/reporter.ts'
import { createTerminal, type Terminal } from './output/terminal.ts'
import { createPublisher, type Publisher, type PublisherOptions } from './publisher.ts'
import { createRefreshPlan, type RefreshPlan } from './refresh-plan.ts'
import { createRunner, type RunJobs } from './run-jobs.ts'
import type { Globals, Runtime } from './runtime.ts'
import { budgetKey } from './selection.ts'

/** The mirror and the API of a configuration, for commands that read lists. */
export interface Session extends OpenMirror {
  /** The pages of a job. Reads the token again; `refusal` reports one that cannot be read or is held. */
  source(organization: OrganizationConfig, job: Job): Promise<PageSource>
  refreshes: RefreshPlan
  /** The key of an organization's rate budget. */
  budgetOf(organization: OrganizationConfig): string
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
  const { config, runtime, logger, acceptAddress, onAnswer, exchange } = options
  const { open } = await kindOf(config)
  const address = acceptAddress ? 'accept' : 'claim'
  const mirror = await open({ config, runtime, log: logger, address })
  const { store, tokens } = mirror
  try {
    await tokens.register(config.organizations.map(registered))
  } catch (error) {
    // `start` opens it again and again.
    await mirror.close()
    throw error
  }
  const api = createApi(
    { ...apiOptions(config, runtime, mirror), onAnswer: tracing(logger, onAnswer) },
    exchange,
  )
  const readCredentials = createCredentialsReader({ config, tokens, now: mirror.now })

  const budgetOf = (organization: OrganizationConfig) =>
    budgetKey(config, organization.id, fingerprintOf(organization, tokens))
  const refreshes = createRefreshPlan({ config, store, budgetOf, now: mirror.now })
  return {
    ...mirror,
    refreshes,
    budgetOf,
    async source(organization, job) {
      try {
        const source = api.open(job, await readCredentials(organization))
        refreshes.watch(organization, source)
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
  const refusal = isTokenMissing ? null : known
  return {
    refusal: async () => refusal,
    limit: () => null,
    fetchPage: () => Promise.reject(known),
    close: async () => {},
  }
}

function registered({ id, name, collections }: OrganizationConfig) {
  return { id, name, collections: collections.map((collection) => collection.name) }
}

function apiOptions(
  config: Config,
  { sleep, random, yieldToEventLoop }: Runtime,
  { tokens, now }: OpenMirror,
): ApiOptions {
  const { api, rateLimit, retry } = config
  return {
    baseUrl: api.baseUrl,
    timeoutMs: api.timeout,
    maxResponseBytes: api.maxResponseBytes,
    userAgent: USER_AGENT,
    concurrency: config.concurrency,
    rate: {
      requestsPerMinute: rateLimit.requestsPerMinute,
      sharePercent: rateLimit.sharePercent,
      refreshPercent: Math.max(
        0,
        ...config.organizations.map(({ refresh }) => (refresh === false ? 0 : refresh.share)),
      ),
      fallbackWaitMs: rateLimit.fallbackWait,
      maxWaitMs: rateLimit.maxWait,
    },
    retry: { attempts: retry.attempts, minDelayMs: retry.minDelay, maxDelayMs: retry.maxDelay },
    budgets: tokens.budgets,
    now,
    sleep,
    random,
    yieldToEventLoop,
  }
}

/** With `--log-level trace`: a line for each answer. Filters may hold personal data, so only the path is shown. */
function tracing(logger: Logger, onAnswer: ApiOptions['onAnswer']): ApiOptions['onAnswer'] {
  if (!logger.isLevelEnabled('trace')) return onAnswer
  return (answer) => {
    onAnswer?.(answer)
    const { job, page, status, ms, announced } = answer
    const { organization, collection } = job
    logger.trace(
      {
        event: status === null ? 'request_lost' : 'request_answered',
        organization: organization.name,
        collection: collection.name,
        method: 'GET',
        path: collection.path,
        page,
        status,
        duration_ms: ms,
        rate_limit: announced?.limit,
        rate_limit_remaining: announced?.remaining,
        retry_after_ms: announced?.retryAfterMs,
      },
      status === null ? 'no answer came' : 'request answered',
    )
  }
}

/** Where a command writes what it does. */
export interface Log {
  terminal: Terminal
  logger: Logger
}

export async function openLog(runtime: Runtime, globals: Globals): Promise<Log> {
  const terminal = createTerminal(runtime.stderr, runtime.env.TERM)
  return { terminal, logger: await createLogger(loggerOptions(globals, runtime, terminal)) }
}

/** Of the file that `publish` names; null: none. */
function publisherOf({
  config,
  ...options
}: Omit<PublisherOptions, 'target' | 'config'> & { config: Config }): Publisher | null {
  const { publish: target, postgres } = config
  return target === null || postgres ? null : createPublisher({ target, config, ...options })
}

/** Opens the mirror for a command that changes it and sends nothing. `close` publishes what is new. */
export async function openToChange(
  config: Config,
  runtime: Runtime,
  globals: Globals,
  { isForgetting }: { isForgetting: boolean },
): Promise<OpenMirror> {
  const { logger } = await openLog(runtime, globals)
  const { open } = await kindOf(config)
  const mirror = await open({ config, runtime, log: logger })
  const publisher = publisherOf({
    config,
    runtime,
    logger,
    mirror,
    isService: false,
    evenUnread: isForgetting,
  })
  return {
    ...mirror,
    async close() {
      await publisher?.close()
      await mirror.close()
    },
  }
}

/** What a command that reads lists works with, and whom it tells. */
export interface CommandSession extends Session {
  logger: Logger
  reporter: Reporter
  /** Runs these jobs side by side, once. */
  runJobs: RunJobs
}

export interface CommandOptions
  extends Pick<SessionOptions, 'config' | 'runtime' | 'acceptAddress' | 'onAnswer'>,
    Log {
  /** `start`: the published file is made while it runs. Other commands make it when they close the session. */
  isService?: boolean
}

/** Opens the session of a command that reads lists. `close` ends all that belongs to it, the mirror last but for pings. */
export async function openCommand({
  isService = false,
  terminal,
  ...options
}: CommandOptions): Promise<CommandSession> {
  const { config, runtime, logger } = options
  const session = await openSession(options)
  const pings = pingsOf(config, runtime, logger, USER_AGENT)
  const publisher = publisherOf({ config, runtime, logger, mirror: session, isService })
  const budgets = new Map(config.organizations.map((one) => [one.id, () => session.budgetOf(one)]))
  const reporter = createReporter({
    config,
    runtime,
    logger,
    terminal,
    budgetOf: ({ organization: { id } }) => budgets.get(id)?.() ?? id,
    onRefresh: () => publisher?.note(),
  })
  const clocked = { ...runtime, now: session.now }
  return {
    ...session,
    logger,
    reporter,
    runJobs: createRunner({ config, session, reporter, pings, publisher, runtime: clocked }),
    async close() {
      await publisher?.close()
      if (!isService) reporter.summarize()
      reporter.close()
      await session.close()
      // Last: other processes can have the mirror while pings are sent.
      await pings.idle()
    },
  }
}
