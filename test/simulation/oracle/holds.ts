import { listenWith, splitJob } from '../happening.ts'
import type { SimulatedProcess } from '../process.ts'
import type { OracleContext } from './context.ts'
import type { Finding } from './ledger.ts'

interface Hold {
  by: SimulatedProcess
  at: number
  /** Those that used the token then, and for whom nobody has acted since. */
  organizations: Set<string>
  /** Whether somebody has acted for one of them: whoever is not held himself may use the token again. */
  isLifted: boolean
}

/** Promise 3: after a 401 no request with that token is sent until somebody acts or the token changes. */
export function watchHolds(context: OracleContext) {
  const { now, setting, mirror, tokenOf, wasLockedSince, complain } = context
  const holds = new Map<string, Hold>()
  // Whatever anybody does: nobody sends a token again in the run in which it was refused.
  const refusedRuns = new Map<string, SimulatedProcess>()
  /** Jobs that were taken while their organization was held. */
  const takenHeld = new Map<string, SimulatedProcess>()

  function heldInMirror(): Set<string> {
    const held = mirror.rows('SELECT id FROM organizations WHERE held_since IS NOT NULL')
    return new Set(held.map(({ id }) => String(id)))
  }

  /** Its process may have been killed before it wrote it, or waits for the lock. */
  function isWritten({ at, organizations }: Hold): boolean {
    return !(at === now() || wasLockedSince(at)) || !organizations.isDisjointFrom(heldInMirror())
  }

  function isKnown(hold: Hold, asker: SimulatedProcess): boolean {
    return (hold.by === asker && asker.isAlive()) || isWritten(hold)
  }

  function lift(holdsToLift: Iterable<Hold>, organizations: readonly string[]): void {
    for (const hold of holdsToLift)
      for (const id of organizations) if (hold.organizations.delete(id)) hold.isLifted = true
  }

  return listenWith<Finding>({
    claimed({ process, job }) {
      const [organization] = splitJob(job)
      const token = tokenOf(process, organization)
      // Who comes with another token than the one that was refused lifts the hold, also for a process that still has the old one.
      for (const [other, hold] of holds)
        if (other !== token && isKnown(hold, process)) lift([hold], [organization])
      const hold = holds.get(token)
      if (hold?.organizations.has(organization) && isKnown(hold, process)) takenHeld.set(job, process)
      else takenHeld.delete(job)
    },
    sent({ request: { process, token, job, number, page } }) {
      const [organization] = splitJob(job)
      const request = `${process.name} sends request ${number} (${job} page ${page})`
      if (refusedRuns.get(job) === process) complain(`${request} after a 401 in the same run`, job)
      const hold = holds.get(token)
      if (hold?.organizations.has(organization) && takenHeld.get(job) === process)
        complain(`${request} though its organization is held`, job)
      else if (hold && !hold.isLifted && isKnown(hold, process))
        complain(`${request} with ${token}, which was refused and is held`, job)
    },
    delivered({ request: { process, token, job }, outcome }) {
      if (outcome.kind !== 'answer' || outcome.status !== 401) return
      const users = setting.tenants.map(({ id }) => id).filter((id) => tokenOf(process, id) === token)
      // A token file that has changed meanwhile: this token is nobody's any more.
      if (users.length === 0) return
      const organizations = new Set([...users, ...(holds.get(token)?.organizations ?? [])])
      holds.set(token, { by: process, at: now(), organizations, isLifted: false })
      refusedRuns.set(job, process)
    },
    resumed: ({ organizations }) => lift(holds.values(), organizations),
    'token replaced': ({ organization }) => lift(holds.values(), [organization]),
    'run began': ({ job }) => refusedRuns.delete(job),
    'refresh began'({ job, within }) {
      if (within === null) refusedRuns.delete(job)
    },
    over({ process }) {
      for (const [token, hold] of holds) if (hold.by === process && !isWritten(hold)) holds.delete(token)
      // A `resume` that is killed once it has written says nothing any more, but has lifted what the mirror no longer has.
      if (!process.name.startsWith('resume')) return
      const held = heldInMirror()
      const free = setting.tenants.filter(({ id }) => !held.has(id))
      lift(
        holds.values(),
        free.map(({ id }) => id),
      )
    },
  })
}
