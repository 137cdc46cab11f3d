import type { Credentials } from '../api/client.ts'
import { createTokenHold, type TokenHold } from '../api/token-hold.ts'
import type { Config, OrganizationConfig } from '../config/config.ts'
import type { Tokens } from '../store/core/tokens.ts'
import { shellWord } from '../text.ts'
import { budgetKey } from './configuration.ts'

/** Which token each organization uses, and what its requests need of it. */
export function createCredentials(config: Config, tokens: Tokens, now: () => number) {
  const { organizations } = config
  /** The token that each organization uses, as it was read last; null where it cannot be read. */
  const fingerprints = new Map(organizations.map((one) => [one.id, fingerprintOf(one, tokens)]))
  /** The one that the mirror was told of each, by this process. */
  const told = new Map<string, string>()
  const holds = new Map<string, TokenHold>()

  function holdOf(fingerprint: string, resume: string): TokenHold {
    const hold = (reason: string) => {
      const holders = organizations.filter(({ id }) => fingerprints.get(id) === fingerprint)
      const ids = holders.map(({ id }) => id)
      return tokens.hold(ids, fingerprint, reason, new Date(now()).toISOString())
    }
    return createTokenHold({ heldReason: () => tokens.heldReason(fingerprint), hold }, resume)
  }

  return {
    /** The key of an organization's rate budget. */
    budgetOf: ({ id }: Pick<OrganizationConfig, 'id'>) => budgetKey(config, id, fingerprints.get(id) ?? null),
    /** Reads the token again. Throws TokenFileError, and TokenRefusedError for a held one. */
    async read({ id, name, readToken }: OrganizationConfig): Promise<Credentials> {
      const token = readToken()
      const fingerprint = tokens.fingerprint(token)
      fingerprints.set(id, fingerprint)
      // One of its organizations stands for all.
      const hold =
        holds.get(fingerprint) ?? holdOf(fingerprint, `admin-mirror resume --org ${shellWord(name)}`)
      holds.set(fingerprint, hold)
      const reason = await hold.begin()
      // A process may have an older token than the configuration by now, or a `check` was typed with a wrong one: what is told of the organization
      // goes by a token that may be sent, as soon as somebody uses one.
      if (reason === null || told.get(id) !== fingerprint) await tokens.useToken(id, fingerprint)
      told.set(id, fingerprint)
      hold.check()
      return { token, budgetKey: budgetKey(config, id, fingerprint), hold }
    },
  }
}

function fingerprintOf({ readToken }: OrganizationConfig, { fingerprint }: Tokens): string | null {
  try {
    return fingerprint(readToken())
  } catch {
    return null
  }
}
