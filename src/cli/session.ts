import type { Logger } from 'pino'
import { type ApiOptions, createApi } from '../api/client.ts'
import type { HttpGet } from '../api/http.ts'
import type { Config } from '../config/config.ts'
import type { OrganizationConfig } from '../config/organizations.ts'
import { JobError, toKnownError } from '../errors.ts'
import type { ListNames } from '../store/postgres/free-lists.ts'
import type { ListQueue } from '../store/postgres/queue/queue.ts'
import { claimAddress } from '../store/sqlite/address.ts'
import { announceDaemon, readDaemons, withdrawDaemon } from '../store/sqlite/daemons.ts'
import { newLockName } from '../store/sqlite/file/lock-file.ts'
import { translatingErrors } from '../store/sqlite/file/open.ts'
import { createLeases } from '../store/sqlite/leases.ts'
import { openSqliteStore } from '../store/sqlite/store.ts'
import { makeConfigured } from '../store/sqlite/tables/configured.ts'
import { createTokens } from '../store/sqlite/tokens.ts'
import type { Tokens } from '../store/tokens.ts'
import type { Store } from '../sync/store.ts'
import type { Job, PageSource } from '../sync/types.ts'
import type { ServedMirror } from './listener/source.ts'
import { openMirror } from './mirror-file.ts'
import { createFilePublishing, type Publishing } from './publisher.ts'
import { createRefreshPlan, type RefreshPlan } from './refresh/refresh-plan.ts'
import type { Runtime } from './runtime.ts'
import { createCredentialsReader } from './token-holds.ts'

/** A mirror of either kind, open for writing. */
export interface OpenMirror {
  store: Store
  /** Names this process among those on the mirror; of a mirror in a file, the name of its lock file. */
  processName: string
  tokens: Tokens
  /** Tells `status` that this process is a `start`. Returns a function that takes it back. */
  announceDaemon(): Promise<() => Promise<void>>
  /** Of a mirror that several machines share. */
  sharing?: Sharing
  /** How the copy for readers is made. */
  publishing: Publishing
  /** What the listener reads. */
  serve(): Promise<ServedMirror>
  /** The clock that all processes on the mirror share. Epoch milliseconds. */
  now: () => number
  close(): Promise<void>
}

/** The mirror and the API of a configuration, for commands that read lists. */
export interface Session extends OpenMirror {
  /** The pages of a job. Reads the token again; `refusal` reports one that cannot be read or is held. */
  source(organization: OrganizationConfig, job: Job): Promise<PageSource>
  refreshes: RefreshPlan
  /** Names the rate budget of an organization; those of one name share it. */
  budgetOf(organization: OrganizationConfig): string
}

/** How several workers divide the lists. */
export interface Sharing {
  /** The lists that wait for a worker. `onTrouble` gets what its maintenance met. Throws MirrorError. */
  openQueue(onTrouble: (error: unknown) => void): Promise<ListQueue>
  /** The jobs whose owner died. */
  abandonedJobs(): Promise<{ organizationId: string; collection: string }[]>
  /** Whether a living process works on a job, be it this one. */
  isOwned(organizationId: string, collection: string): Promise<boolean>
  /** Those of the lists that no worker reads, or is about to read: they are this one's for some seconds. */
  takeFreeLists<L extends ListNames>(lists: readonly L[]): Promise<L[]>
}

export interface SessionOptions {
  config: Config
  runtime: Runtime
  logger: Logger
  /** Whether a held token may be tried once more. */
  tryHeldTokens: boolean
  /** `--accept-address`: the mirror holds the lists of `api.baseUrl`, whatever address they were read from. */
  acceptAddress?: boolean
  userAgent: string
  /** Counts a request: the status of its answer, or null where none came. */
  onAnswer?: ApiOptions['onAnswer']
  /** Replaces the network in a simulation. */
  exchange?: HttpGet
}

export async function openSession(options: SessionOptions): Promise<Session> {
  const { config, runtime, logger, tryHeldTokens, userAgent, onAnswer, exchange } = options
  const openMirrorOf = config.postgres
    ? (await import('./postgres/session.ts')).openPostgresMirror
    : openSqliteMirror
  const mirror = await openMirrorOf(options)
  const { store, tokens } = mirror
  await tokens.register(config.organizations.map(registered))
  const api = createApi(
    { ...apiOptions(config, runtime, userAgent, mirror), onAnswer: tracing(logger, onAnswer) },
    exchange,
  )
  const readCredentials = createCredentialsReader({
    config,
    tokens,
    api,
    runtime: { ...runtime, now: mirror.now },
    logger,
    tryHeldTokens,
  })

  const budgetOf = (organization: OrganizationConfig) => budgetName(config, tokens, organization)
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

async function openSqliteMirror(options: SessionOptions): Promise<OpenMirror> {
  const { config, runtime, logger, acceptAddress = false } = options
  const { database: file, keepRuns } = config
  const { baseUrl } = config.api
  const report = (message: string) => logger.info({ event: 'mirror_busy' }, message)
  const { connection, transact, patience } = await openMirror(file, runtime, report)
  try {
    const warning = await transact(() => {
      const adopted = claimAddress(connection, baseUrl, acceptAddress)
      makeConfigured(connection, config.collections)
      return adopted
    })
    if (warning !== null) logger.warn({ event: 'address_accepted' }, warning)
  } catch (error) {
    connection.close()
    throw error
  }
  const tokens = translatingErrors(file, () => createTokens(connection, transact, runtime.newToken))
  const name = newLockName(runtime.pid, runtime.newToken)
  const leases = translatingErrors(file, () => createLeases({ connection, file, name, now: runtime.now }))
  const store = translatingErrors(file, () =>
    openSqliteStore({ connection, file, baseUrl, leases, keepRuns, ...patience }),
  )
  return {
    store,
    tokens,
    publishing: createFilePublishing(connection, file, runtime),
    serve: async () => {
      const { createServedFile } = await import('./listener/served-file.ts')
      return createServedFile(connection, file, name)
    },
    announceDaemon: async () => {
      const others = await transact(() => {
        const before = readDaemons(connection, file, name).filter(({ running }) => running === true)
        announceDaemon(connection, name, new Date(runtime.now()).toISOString())
        return before
      })
      for (const { pid, since } of others)
        logger.warn(
          { event: 'daemon_beside', owner: pid, since },
          'another start is at work on this mirror: what one of them has read, the other reads again, so the API is asked twice; end one of them, unless it is stopping already',
        )
      return () => transact(() => withdrawDaemon(connection, name))
    },
    processName: name,
    now: runtime.now,
    close: async () => {
      leases.close()
      connection.close()
    },
  }
}

/** Names the rate budget of an organization. Without its token file it has one of its own. */
function budgetName({ rateLimit }: Config, tokens: Tokens, organization: OrganizationConfig): string {
  if (rateLimit.scope === 'all') return 'all'
  if (rateLimit.scope === 'organization') return organization.id
  try {
    return tokens.fingerprint(organization.readToken())
  } catch {
    return organization.id
  }
}

/**
 * With a held token, or a mirror that cannot be used, no run begins. Without its token file a run begins and fails, so that
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
    linkHosts: api.linkHosts,
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

/** With `--log-level trace`: a line for each answer. Filters may hold what is personal, so only the path is shown. */
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
