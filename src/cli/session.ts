import type { Logger } from 'pino'
import { type Credentials, createApi } from '../api/client.ts'
import type { HttpGet } from '../api/http.ts'
import type { TokenHold } from '../api/token-hold.ts'
import type { Config } from '../config/config.ts'
import type { OrganizationConfig } from '../config/organizations.ts'
import { JobError, type MirrorError, TokenRefusedError, toKnownError } from '../errors.ts'
import { claimAddress } from '../mirror/address.ts'
import { makeConfigured } from '../mirror/collection-tables.ts'
import { type Connection, guarded, openForWriting } from '../mirror/database.ts'
import { newLockName } from '../mirror/lock-file.ts'
import { createMirror } from '../mirror/mirror.ts'
import { createOwners } from '../mirror/owners.ts'
import { createRegistry, type Registry } from '../mirror/registry.ts'
import { createLockWait, createTransact } from '../mirror/transaction.ts'
import type { Mirror } from '../sync/mirror.ts'
import type { Job, PageSource } from '../sync/types.ts'
import { untilHoldIsWritten } from './hold-writing.ts'
import { idleSettings } from './idle-settings.ts'
import type { Runtime } from './runtime.ts'

/** The mirror and the API of a configuration, put together: what `sync`, `backfill` and `start` work with. */
export interface Session {
  mirror: Mirror
  connection: Connection
  registry: Registry
  /** The pages of a job; reads the token anew. A token that cannot be read, or is held, is told by `refusal`. */
  source(organization: OrganizationConfig, job: Job): Promise<PageSource>
  close(): void
}

export interface SessionOptions {
  config: Config
  runtime: Runtime
  logger: Logger
  /** Whether a token that an earlier run saw refused may be tried once more: only where somebody asked for it by hand. */
  tryHeldTokens: boolean
  /** `--accept-address`: the lists of the mirror are those of `api.baseUrl`, whatever address they were read from. */
  acceptAddress?: boolean
  userAgent: string
  /** What stands in for the network, in a world where that is simulated. */
  exchange?: HttpGet
}

export async function openSession(options: SessionOptions): Promise<Session> {
  const { config, runtime, logger, tryHeldTokens, acceptAddress = false, userAgent, exchange } = options
  const { database: file } = config
  const { now, sleep, signal, newToken } = runtime
  const connection = await createLockWait(file, runtime)(() => openForWriting(file))
  const patience = { now, sleep, signal, report: (message: string) => logger.info(message) }
  const transact = createTransact({ connection, file, ...patience })
  try {
    const warning = await transact(() => {
      const adopted = claimAddress(connection, config.api.baseUrl, acceptAddress)
      makeConfigured(connection, config.collections)
      return adopted
    })
    if (warning !== null) logger.warn(warning)
  } catch (error) {
    connection.close()
    throw error
  }
  const registry = guarded(file, () => createRegistry(connection, transact, newToken))
  await registry.register(config.organizations.map(registered))
  const name = newLockName(runtime.pid, newToken)
  const owners = guarded(file, () => createOwners({ connection, file, name, now }))
  const { keepRuns } = config
  const { baseUrl } = config.api
  const mirror = guarded(file, () =>
    createMirror({ connection, file, baseUrl, owners, keepRuns, ...patience }),
  )
  const api = createApi(apiOptions(config, runtime, userAgent, registry, name), exchange)
  const holds = new Map<string, TokenHold>()
  for (const warning of idleSettings(config)) logger.warn(warning)

  async function credentials(organization: OrganizationConfig): Promise<Credentials> {
    const token = organization.readToken()
    const fingerprint = registry.fingerprint(token)
    await registry.useToken(organization.id, fingerprint)
    const hold = holds.get(fingerprint) ?? holdOf(fingerprint)
    holds.set(fingerprint, hold)
    const scopes = { token: fingerprint, organization: organization.id, all: 'all' }
    return { token, scope: scopes[config.rateLimit.scope], hold }
  }

  function holdOf(fingerprint: string): TokenHold {
    // A token file may be exchanged while its old token is refused: nobody is held then, and jobs that began with the old
    // one must not send it again all the same.
    let refusedLast: string | null = null
    return api.tokenHold({
      heldReason: () => registry.heldReason(fingerprint) ?? refusedLast,
      hold: async (reason) => {
        const at = new Date(now()).toISOString()
        const write = async () => {
          const ids = organizationsWith(fingerprint).map(({ id }) => id)
          if (ids.length === 0) refusedLast = reason
          await registry.hold(ids, fingerprint, reason, at)
        }
        const onWait = (error: MirrorError) => logger.warn({ reason }, `${UNWRITTEN_HOLD}: ${error.message}`)
        if (await untilHoldIsWritten(write, { now, sleep, signal, onWait }))
          logger.info({ reason }, 'the hold of the refused token is written')
      },
      lift: () => registry.liftHold(fingerprint),
    })
  }

  function organizationsWith(fingerprint: string): OrganizationConfig[] {
    return config.organizations.filter((organization) => {
      try {
        return registry.fingerprint(organization.readToken()) === fingerprint
      } catch {
        return false
      }
    })
  }

  function assertNotHeld(organization: OrganizationConfig, fingerprint: string): void {
    const reason = registry.heldReasonOf(organization.id, fingerprint)
    if (reason === null) return
    throw new TokenRefusedError(
      `${reason}, and nothing is sent with it. Put a new token into the configuration, or run ` +
        `"admin-mirror resume --org ${organization.name}" if it is valid again`,
    )
  }

  async function source(organization: OrganizationConfig, job: Job): Promise<PageSource> {
    try {
      const known = await credentials(organization)
      if (!tryHeldTokens) assertNotHeld(organization, registry.fingerprint(known.token))
      return api.open(job, known)
    } catch (error) {
      return closedSource(error)
    }
  }

  function close(): void {
    owners.close()
    connection.close()
  }

  return { mirror, connection, registry, source, close }
}

const UNWRITTEN_HOLD =
  'waiting to write the hold of a refused token into the mirror (a second signal ends this process at once, and the next ' +
  'one sends that token once more)'

/** A held token, or a mirror that cannot be used, lets no run begin; one without its token begins and fails, to be seen in `sync_runs`. */
function closedSource(error: unknown): PageSource {
  if (error instanceof Error && error.name === 'TokenFileError') {
    const missing = new JobError('CONFIGURATION', error.message)
    return { refusal: async () => null, fetchPage: () => Promise.reject(missing), close: async () => {} }
  }
  const refusal = toKnownError(error)
  return { refusal: async () => refusal, fetchPage: () => Promise.reject(refusal), close: async () => {} }
}

function registered({ id, name, collections }: OrganizationConfig) {
  return { id, name, collections: collections.map((collection) => collection.name) }
}

function apiOptions(
  config: Config,
  runtime: Runtime,
  userAgent: string,
  registry: Registry,
  processName: string,
): Parameters<typeof createApi>[0] {
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
    budgets: registry.budgets,
    processName,
    now: runtime.now,
    sleep: runtime.sleep,
    random: runtime.random,
  }
}
