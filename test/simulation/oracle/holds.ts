import { listenWith, type Tell } from '../happening.ts'
import type { SimulatedProcess } from '../process.ts'
import { jobName, type Request } from '../traffic.ts'
import type { OracleContext } from './context.ts'

interface Hold {
  by: SimulatedProcess
  at: number
  /** Those that used the token then. */
  organizations: readonly string[]
  /** Commands by hand that have tried it since. */
  tries: Map<SimulatedProcess, number>
}

/** Promise 3: after a 401 no request with that token is sent until somebody acts or the token changes. */
export function watchHolds(context: OracleContext): Tell {
  const { now, setting, mirror, tokenOf, wasLockedSince, complain } = context
  const holds = new Map<string, Hold>()
  // Whatever anybody does: nobody sends a token again in the run in which it was refused.
  const refusedRuns = new Map<string, SimulatedProcess>()

  function isHeldInMirror({ organizations }: Hold): boolean {
    const held = mirror.rows('SELECT id FROM organizations WHERE held_since IS NOT NULL').map(({ id }) => id)
    return organizations.some((id) => held.includes(id))
  }

  /** Nobody can know of a hold that was never committed: its process was killed before, or waits for the lock. */
  function isKnown(hold: Hold, asker: SimulatedProcess): boolean {
    if (hold.by === asker && asker.isAlive()) return true
    const couldNotYet = hold.at === now() || wasLockedSince(hold.at)
    return !couldNotYet || isHeldInMirror(hold)
  }

  function onSent({ process, token, job, number, page }: Request): void {
    const request = `request ${number} (${job} page ${page})`
    if (refusedRuns.get(job) === process)
      complain(`${process.name} sends ${request} after a 401 in the same run`, job)
    const hold = holds.get(token)
    if (!hold || !isKnown(hold, process)) return
    const tries = (hold.tries.get(process) ?? 0) + 1
    hold.tries.set(process, tries)
    if (process.byHand && hold.by !== process && tries === 1) return
    complain(`${process.name} sends ${request} with ${token}, which was refused and is held`, job)
  }

  function onStatus(status: number, { process, token, job }: Request): void {
    const hold = holds.get(token)
    if (status === 401) {
      const organizations = setting.tenants.map(({ id }) => id).filter((id) => tokenOf(process, id) === token)
      // A token file that has changed meanwhile: this token is nobody's any more.
      if (organizations.length > 0) {
        holds.set(token, { by: process, at: now(), organizations, tries: hold?.tries ?? new Map() })
        refusedRuns.set(job, process)
      }
    } else if (hold?.tries.has(process) && ((status >= 200 && status <= 299) || status === 403))
      holds.delete(token)
  }

  function lift(organizations: readonly string[]): void {
    for (const [token, hold] of holds)
      if (hold.organizations.some((id) => organizations.includes(id))) holds.delete(token)
  }

  function forgetUnwritten(process: SimulatedProcess): void {
    for (const [token, hold] of holds)
      if (hold.by === process && (hold.at === now() || wasLockedSince(hold.at)) && !isHeldInMirror(hold))
        holds.delete(token)
  }

  return listenWith({
    sent: ({ request }) => onSent(request),
    delivered({ request, outcome }) {
      if (outcome.kind === 'answer') onStatus(outcome.status, request)
    },
    resumed: ({ organizations }) => lift(organizations),
    'token replaced': ({ organization }) => lift([organization]),
    'run began'({ job: { organization, collection } }) {
      refusedRuns.delete(jobName(organization.id, collection.name))
    },
    killed: ({ process }) => forgetUnwritten(process),
    ended: ({ process }) => forgetUnwritten(process),
  })
}
