import { type Finding, ok, warn } from '../../check/finding.ts'
import type { Config } from '../../config/config.ts'
import { sendPing } from '../../ping/send.ts'
import { USER_AGENT as userAgent } from '../names.ts'
import type { Runtime } from '../runtime.ts'
import { hostOf } from './pings.ts'

/** Milliseconds. */
const LIMIT_MS = 10_000

/**
 * Sends one ping to each address, and says what came back. `isWell`: whether nothing failed. A success would end the alarm of
 * a list that still fails, so the test tells a failure then.
 */
export async function checkPings(
  { organizations }: Pick<Config, 'organizations'>,
  isWell: boolean,
  { signal }: Pick<Runtime, 'signal'>,
): Promise<Finding[]> {
  const addresses = new Set(organizations.flatMap(({ ping }) => ping() ?? []))
  const how = isWell ? '' : ' (fail: something is not well)'
  return Promise.all(
    Array.from(addresses, async (address) => {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(LIMIT_MS)])
      try {
        const kind = isWell ? 'success' : 'fail'
        await sendPing(address, kind, 'admin-mirror: a test by "check"\n', { userAgent, signal: limit })
        return ok('ping', `${hostOf(address)} took a test ping${how}`)
      } catch (error) {
        const reason = error instanceof Error ? error.message : 'unknown'
        const cure = 'look at ping in the configuration, and at the way there'
        return warn('ping', `${hostOf(address)} did not take a test ping: ${reason}`, cure)
      }
    }),
  )
}
