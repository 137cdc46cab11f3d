import type { Logger } from 'pino'
import { type ApiOptions, createApi } from '../api/client.ts'
import type { HttpGet } from '../api/http.ts'
import type { Config } from '../config/config.ts'
import type { OrganizationConfig } from '../config/organizations.ts'
import { JobError, toKnownError } from '../errors.ts'
import type { Job, PageSource } from '../sync/types.ts'
import { createCredentialsReader, fingerprintOf } from './credentials.ts'
import { kindOf, type OpenMirror } from './mirror.ts'
import { createRefreshPlan, type RefreshPlan } from './refresh-plan.ts'
import type { Runtime } from './runtime.ts'
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
  acceptAddress?: boolean
  userAgent: string
  /** Called after each request. */
  onAnswer?: ApiOptions['onAnswer']
  /** Replaces the network in a simulation. */
  exchange?: HttpGet
}

export async function openSession(options: SessionOptions): Promise<Session> {
  const { config, runtime, logger, acceptAddress, userAgent, onAnswer, exchange } = options
  const { open } = await kindOf(config)
  const address = acceptAddress ? 'accept' : 'claim'
  const mirror = await open({ config, runtime, log: logger, address })
  const { store, tokens } = mirror
  await tokens.register(config.organizations.map(registered))
  const api = createApi(
    { ...apiOptions(config, runtime, userAgent, mirror), onAnswer: tracing(logger, onAnswer) },
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
    source: async (organization, job) => {
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
  const isTokenMissing = error instanceof Error && error.name === 'TokenFileError'
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
  userAgent: string,
  { tokens, processName, now }: OpenMirror,
): ApiOptions {
  const { api, rateLimit, retry } = config
  return {
    baseUrl: api.baseUrl,
    timeoutMs: api.timeout,
    maxResponseBytes: api.maxResponseBytes,
    userAgent,
    concurrency: config.concurrency,
    rate: {
      requestsPerMinute: rateLimit.requestsPerMinute,
      sharePercent: rateLimit.sharePercent,
      fallbackWaitMs: rateLimit.fallbackWait,
      maxWaitMs: rateLimit.maxWait,
    },
    retry: { attempts: retry.attempts, minDelayMs: retry.minDelay, maxDelayMs: retry.maxDelay },
    budgets: tokens.budgets,
    processName,
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
