import type { Logger } from 'pino'
import type { Credentials } from '../api/client.ts'
import { createTokenHold, type TokenHold } from '../api/token-hold.ts'
import type { Config } from '../config/config.ts'
import type { OrganizationConfig } from '../config/organizations.ts'
import { MirrorError, MirrorLostError, TokenRefusedError } from '../errors.ts'
import type { Tokens } from '../store/core/tokens.ts'
import { onHold, shellWord } from '../text.ts'
import type { Runtime } from './runtime.ts'
import { budgetKey } from './selection.ts'

export interface CredentialsReaderOptions {
  config: Pick<Config, 'organizations' | 'rateLimit'>
  tokens: Tokens
  runtime: Pick<Runtime, 'now' | 'sleep' | 'signal'>
  logger: Logger
  /** Whether a token that an earlier run saw refused may be tried once more: only in a command typed by hand. */
  tryHeldTokens: boolean
}

/**
 * Returns a function that reads the token of an organization again, and gives its requests what they need. It throws
 * TokenRefusedError for a held token.
 */
export function createCredentialsReader(options: CredentialsReaderOptions) {
  const { config, tokens, runtime, logger, tryHeldTokens } = options
  const holds = new Map<string, TokenHold>()

  function holdOf(fingerprint: string): TokenHold {
    // Remembered for a moment: hundreds of lists may meet the hold at once, and to find out whose token it is, all token files have to be read.
    let resume: { command: string; until: number } | null = null
    const store = {
      ...tokens.holdOf(fingerprint),
      hold: async (reason: string) => {
        resume = null
        const at = new Date(runtime.now()).toISOString()
        const write = () => {
          const ids = organizationsWith(fingerprint).map(({ id }) => id)
          return tokens.hold(ids, fingerprint, reason, at)
        }
        const onWait = (error: MirrorError) =>
          logger.warn({ event: 'hold_unwritten', reason }, `${UNWRITTEN_HOLD}: ${error.message}`)
        if (await untilHoldIsWritten(write, { ...runtime, onWait }))
          logger.info({ event: 'hold_written', reason }, 'the hold of the refused token is written')
      },
      lift: () => tokens.liftHold(fingerprint),
    }
    return createTokenHold(store, () => {
      const now = runtime.now()
      if (!resume || now >= resume.until)
        resume = { command: resumeCommand(organizationsWith(fingerprint)), until: now + REMEMBERED_MS }
      return resume.command
    })
  }

  function resumeCommand(holders: readonly OrganizationConfig[]): string {
    const names = holders.length === config.organizations.length ? [] : holders
    return ['admin-mirror resume', ...names.map(({ name }) => `--org ${shellWord(name)}`)].join(' ')
  }

  function organizationsWith(fingerprint: string): OrganizationConfig[] {
    return config.organizations.filter((one) => fingerprintOf(one, tokens) === fingerprint)
  }

  async function assertNotHeld({ id, name }: OrganizationConfig, fingerprint: string): Promise<void> {
    const reason = await tokens.heldReasonOfOrganization(id, fingerprint)
    if (reason === null) return
    throw new TokenRefusedError(`${reason}. ${onHold(`admin-mirror resume --org ${shellWord(name)}`)}`)
  }

  return async (organization: OrganizationConfig): Promise<Credentials> => {
    const token = organization.readToken()
    const fingerprint = tokens.fingerprint(token)
    await tokens.useToken(organization.id, fingerprint)
    if (!tryHeldTokens) await assertNotHeld(organization, fingerprint)
    const hold = holds.get(fingerprint) ?? holdOf(fingerprint)
    holds.set(fingerprint, hold)
    return { token, budgetKey: budgetKey(config, organization.id, fingerprint), hold }
  }
}

/** Names the token of an organization; null if it cannot be read now. */
export function fingerprintOf(
  { readToken }: Pick<OrganizationConfig, 'readToken'>,
  { fingerprint }: Pick<Tokens, 'fingerprint'>,
): string | null {
  try {
    return fingerprint(readToken())
  } catch {
    return null
  }
}

/** A token file that could not be read may be readable a little later. */
const REMEMBERED_MS = 10_000

const UNWRITTEN_HOLD =
  'waiting to write the hold of a refused token into the mirror (a second signal would end this process without it, and the next ' +
  'process would send that token once more)'

/** The pause between two tries of a write that fails at once (a full disk); one that meets a lock takes 30 seconds by itself. */
const TRY_EVERY_MS = 500

const WAIT_TOLD_EVERY_MS = 60_000

export interface HoldWriting extends Pick<Runtime, 'now' | 'sleep'> {
  /** Aborted when the process was told to stop. The wait continues. */
  signal: AbortSignal
  /** Called after a failed try: the first one, then once a minute, and once after the signal. */
  onWait: (error: MirrorError) => void
}

/**
 * Writes the hold of a refused token, however long the mirror cannot be written: without it, the next process would send the
 * token again. Returns whether it had to wait. Throws MirrorLostError where this process can never write the mirror again.
 */
export async function untilHoldIsWritten(write: () => Promise<void>, options: HoldWriting): Promise<boolean> {
  const { now, sleep, signal, onWait } = options
  let reportedAt: number | null = null
  let isStopReported = false
  for (;;) {
    try {
      await write()
      return reportedAt !== null
    } catch (error) {
      if (!(error instanceof MirrorError) || error instanceof MirrorLostError) throw error
      const isStopNews = signal.aborted && !isStopReported
      if (reportedAt === null || isStopNews || now() - reportedAt >= WAIT_TOLD_EVERY_MS) {
        onWait(error)
        reportedAt = now()
        isStopReported = signal.aborted
      }
    }
    await sleep(TRY_EVERY_MS)
  }
}
