import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { createPings, type Pings, type StandingTrouble } from '../ping/pings.ts'
import { sendPing } from '../ping/send.ts'
import type { Status } from '../report/status.ts'
import type { Tokens } from '../store/core/tokens.ts'
import { fingerprintOf } from './credentials.ts'
import type { Runtime } from './runtime.ts'

/** The pings of a configuration. Their addresses are secrets, so that the log names only their hosts. */
export function pingsOf(
  { organizations }: Pick<Config, 'organizations'>,
  { now, sleep, signal }: Runtime,
  tokens: Pick<Tokens, 'fingerprint'>,
  logger: Logger,
  userAgent: string,
): Pings {
  const byId = new Map(organizations.map((organization) => [organization.id, organization]))
  return createPings({
    addressOf: (id) => byId.get(id)?.ping() ?? null,
    tokenOf: (id) => {
      const organization = byId.get(id)
      return (organization && fingerprintOf(organization, tokens)) ?? id
    },
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

/** All of an address that may be shown. */
export function hostOf(address: string): string {
  return URL.canParse(address) ? new URL(address).host : 'unknown'
}

/** The lists that earlier processes left in trouble, for pings. */
export function standingTroubles({ jobs }: Pick<Status, 'jobs'>): StandingTrouble[] {
  return jobs.flatMap((job) => {
    const code = troubleCode(job)
    if (!job.configured || code === null) return []
    const { organization_id: organizationId, organization, collection, held_since: held } = job
    return {
      organizationId,
      organization,
      collection,
      code,
      waitsForSomebody: held !== null || job.removals_held > 0,
      endsByRefresh: job.failing_since === null || job.failing_by === 'refresh',
    }
  })
}

function troubleCode(job: Status['jobs'][number]): string | null {
  if (job.held_since !== null) return 'UNAUTHORIZED'
  if (job.removals_held > 0) return 'REMOVALS_HELD'
  return job.failing_since === null ? null : (job.failing_code ?? 'INTERNAL')
}
