import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { createPings, type Pings, type Trouble } from '../ping/pings.ts'
import { sendPing } from '../ping/send.ts'
import { listName, reasonOf } from '../ping/summary.ts'
import { troubleCode } from '../report/verdict.ts'
import { type TroubledList, troubledLists } from '../store/core/status.ts'
import type { RuleRunner } from './mirror.ts'
import type { Runtime } from './runtime.ts'

/** The pings of a configuration. Their addresses are secrets, so that the log names only their hosts. */
export function pingsOf(
  { organizations }: Pick<Config, 'organizations'>,
  { now, sleep, signal }: Runtime,
  mirror: Pick<RuleRunner, 'run'>,
  logger: Logger,
  userAgent: string,
): Pings {
  const byId = new Map(organizations.map((organization) => [organization.id, organization]))
  return createPings({
    addressOf: (id) => byId.get(id)?.ping() ?? null,
    troubles: () => troublesIn(mirror, { sleep, signal }),
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

/** How long a ping waits for a mirror that is away. Then it goes by what its run met. Milliseconds. */
const AWAY_MS = 5000

/** What is wrong by the mirror, as `status` has it; nothing if it cannot be read. */
async function troublesIn(
  { run }: Pick<RuleRunner, 'run'>,
  { sleep, signal }: Pick<Runtime, 'sleep' | 'signal'>,
): Promise<Trouble[]> {
  const over = new AbortController()
  const late = sleep(AWAY_MS, AbortSignal.any([signal, over.signal])).then(
    () => [],
    () => [],
  )
  const lists = await Promise.race([run(troubledLists), late]).catch(() => [])
  over.abort()
  return lists.flatMap(troubleOf)
}

function troubleOf(list: TroubledList): Trouble[] {
  const code = troubleCode(list)
  if (code === null) return []
  return [
    {
      organizationId: list.organization_id,
      list: listName(list.organization, list.collection),
      reason: reasonOf(code, list.failing_message),
      waitsForSomebody: list.held_since !== null || list.removals_held > 0,
    },
  ]
}
