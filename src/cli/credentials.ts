import type { Credentials } from '../api/client.ts'
import { createTokenHold, type TokenHold } from '../api/token-hold.ts'
import type { Config } from '../config/config.ts'
import type { OrganizationConfig } from '../config/organizations.ts'
import { TokenRefusedError } from '../errors.ts'
import type { Tokens } from '../store/core/tokens.ts'
import { onHold, shellWord } from '../text.ts'
import { budgetKey } from './selection.ts'

export interface CredentialsReaderOptions {
  config: Pick<Config, 'organizations' | 'rateLimit'>
  tokens: Tokens
  now: () => number
}

/**
 * Returns a function that reads the token of an organization again, and gives its requests what they need. It throws
 * TokenRefusedError for a held token.
 */
export function createCredentialsReader(options: CredentialsReaderOptions) {
  const { config, tokens, now } = options
  const holds = new Map<string, TokenHold>()
  /** The token that this process said last that an organization uses. It says so once: another process may have a newer configuration. */
  const told = new Map<string, string>()

  function holdOf(fingerprint: string): TokenHold {
    // Found once: hundreds of lists may meet the hold, and to find out whose token it is, all token files have to be read.
    let command: string | null = null
    const store = {
      ...tokens.holdOf(fingerprint),
      async hold(reason: string) {
        const holders = organizationsWith(fingerprint)
        command = resumeCommand(holders)
        const ids = holders.map(({ id }) => id)
        await tokens.hold(ids, fingerprint, reason, new Date(now()).toISOString())
      },
    }
    return createTokenHold(store, () => {
      command ??= resumeCommand(organizationsWith(fingerprint))
      return command
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
    if (told.get(organization.id) !== fingerprint) await tokens.useToken(organization.id, fingerprint)
    told.set(organization.id, fingerprint)
    await assertNotHeld(organization, fingerprint)
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
