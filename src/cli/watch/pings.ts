import type { Logger } from 'pino'
import type { Config } from '../../config/config.ts'
import type { OrganizationConfig } from '../../config/organizations.ts'
import { createPings, type Pings } from '../../ping/pings.ts'
import { sendPing } from '../../ping/send.ts'
import type { Tokens } from '../../store/tokens.ts'
import type { Runtime } from '../runtime.ts'

/** The pings of a configuration. Their addresses are secrets, so that the log names only their hosts. */
export function pingsOf(
  { organizations }: Pick<Config, 'organizations'>,
  { now, sleep, signal }: Runtime,
  tokens: Pick<Tokens, 'fingerprint'>,
  logger: Logger,
  userAgent: string,
): Pings {
  const addresses = new Map(organizations.map(({ id, ping }) => [id, ping()]))
  const byId = new Map(organizations.map((organization) => [organization.id, organization]))
  return createPings({
    addressOf: (id) => addresses.get(id) ?? null,
    tokenOf: (id) => tokenName(byId.get(id), tokens) ?? id,
    send: (address, kind, text, limit) => sendPing(address, kind, text, { userAgent, signal: limit }),
    onLost: (address, kind, reason) =>
      logger.warn(
        { event: 'ping_lost', ping: kind, host: hostOf(address), reason },
        'a ping could not be delivered; the run is not touched by that',
      ),
    onSent: (address, kind) =>
      logger.debug({ event: 'ping_sent', ping: kind, host: hostOf(address) }, 'ping sent'),
    now,
    sleep,
    signal,
  })
}

/** Null without its token file. */
function tokenName(
  organization: OrganizationConfig | undefined,
  { fingerprint }: Pick<Tokens, 'fingerprint'>,
): string | null {
  try {
    return organization ? fingerprint(organization.readToken()) : null
  } catch {
    return null
  }
}

/** All of an address that may be shown. */
export function hostOf(address: string): string {
  return URL.canParse(address) ? new URL(address).host : 'unknown'
}
