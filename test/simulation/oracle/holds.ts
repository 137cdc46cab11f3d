import { listenWith, type Tell } from '../happening.ts'
import type { SimulatedProcess } from '../process.ts'
import { jobName, type Request } from '../traffic.ts'
import type { OracleContext } from './context.ts'

interface Hold {
  by: SimulatedProcess
  at: number
  /** Those that used the token then, and for whom nobody has acted since. */
  organizations: Set<string>
  /** Whether somebody has acted for one of them: by hand the token may be used again. */
  isLifted: boolean
  /** Commands by hand that have tried it since. */
  tries: Map<SimulatedProcess, number>
}

/** Promise 3: after a 401 no request with that token is sent until somebody acts or the token changes. */
export function watchHolds(context: OracleContext): Tell {
  const { now, setting, mirror, tokenOf, wasLockedSince, complain } = context
  const holds = new Map<string, Hold>()
  // Whatever anybody does: nobody sends a token again in the run in which it was refused.
  const refusedRuns = new Map<string, SimulatedProcess>()
  /** Jobs that `start` took while their organization was held. */
  const takenHeld = new Map<string, SimulatedProcess>()
  const resuming = new Set<SimulatedProcess>()

  function isHeldInMirror({ organizations }: Hold): boolean {
    const held = mirror.rows('SELECT id FROM organizations WHERE held_since IS NOT NULL')
    return held.some(({ id }) => organizations.has(String(id)))
  }

  function mayBeUnwritten({ at }: Hold): boolean {
    return at === now() || wasLockedSince(at)
  }

  /** Nobody can know of a hold that was never committed: its process was killed before, or waits for the lock. */
  function isKnown(hold: Hold, asker: SimulatedProcess): boolean {
    const isOwn = hold.by === asker && asker.isAlive()
    return isOwn || !mayBeUnwritten(hold) || isHeldInMirror(hold)
  }

  function onClaimed(process: SimulatedProcess, organization: string, job: string): void {
    const token = tokenOf(process, organization)
    liftOthers(token, organization, process)
    const hold = holds.get(token)
    const isHeld = !process.byHand && hold?.organizations.has(organization) && isKnown(hold, process)
    if (isHeld) takenHeld.set(job, process)
    else takenHeld.delete(job)
  }

  /** Who comes with another token than the one that was refused lifts the hold, also for a process that still has the old one. */
  function liftOthers(token: string, organization: string, process: SimulatedProcess): void {
    for (const [other, hold] of holds)
      if (other !== token && isKnown(hold, process) && hold.organizations.delete(organization))
        hold.isLifted = true
  }

  function onSent({ process, token, organization, job, number, page }: Request): void {
    const request = `${process.name} sends request ${number} (${job} page ${page})`
    if (refusedRuns.get(job) === process) complain(`${request} after a 401 in the same run`, job)
    const hold = holds.get(token)
    if (hold?.organizations.has(organization) && takenHeld.get(job) === process)
      complain(`${request} though its organization is held`, job)
    if (!hold || !isKnown(hold, process)) return
    // Lifted for one of them, it stands for the others until an answer to one of theirs lifts it.
    if (hold.isLifted && !hold.organizations.has(organization)) return
    const tries = (hold.tries.get(process) ?? 0) + 1
    hold.tries.set(process, tries)
    if (hold.isLifted) return
    if (process.byHand && hold.by !== process && tries === 1) return
    complain(`${request} with ${token}, which was refused and is held`, job)
  }

  function onStatus(status: number, { process, token, job }: Request): void {
    const hold = holds.get(token)
    if (status === 401) {
      const users = setting.tenants.map(({ id }) => id).filter((id) => tokenOf(process, id) === token)
      // A token file that has changed meanwhile: this token is nobody's any more.
      if (users.length === 0) return
      const organizations = new Set([...users, ...(hold?.organizations ?? [])])
      holds.set(token, {
        by: process,
        at: now(),
        organizations,
        isLifted: false,
        tries: hold?.tries ?? new Map(),
      })
      refusedRuns.set(job, process)
    } else if (hold?.tries.has(process) && ((status >= 200 && status <= 299) || status === 403))
      holds.delete(token)
  }

  function lift(organizations: readonly string[]): void {
    for (const hold of holds.values())
      for (const id of organizations) if (hold.organizations.delete(id)) hold.isLifted = true
  }

  function forgetUnwritten(process: SimulatedProcess): void {
    for (const [token, hold] of holds)
      if (hold.by === process && mayBeUnwritten(hold) && !isHeldInMirror(hold)) holds.delete(token)
  }

  /** A `resume` that is killed once it has written says nothing any more, but has lifted what the mirror no longer has. */
  function liftWritten(): void {
    const held = new Set(
      mirror.rows('SELECT id FROM organizations WHERE held_since IS NOT NULL').map(({ id }) => String(id)),
    )
    lift(setting.tenants.map(({ id }) => id).filter((id) => !held.has(id)))
  }

  return listenWith({
    claimed({ process, job: { organization, collection } }) {
      onClaimed(process, organization.id, jobName(organization.id, collection.name))
    },
    sent: ({ request }) => onSent(request),
    delivered({ request, outcome }) {
      if (outcome.kind === 'answer') onStatus(outcome.status, request)
    },
    resumed: ({ organizations }) => lift(organizations),
    'token replaced': ({ organization }) => lift([organization]),
    'run began'({ job: { organization, collection } }) {
      refusedRuns.delete(jobName(organization.id, collection.name))
    },
    'refresh began'({ job: { organization, collection }, within }) {
      if (within === null) refusedRuns.delete(jobName(organization.id, collection.name))
    },
    started({ process, command }) {
      if (command.includes('"kind":"resume"')) resuming.add(process)
    },
    killed({ process }) {
      forgetUnwritten(process)
      if (resuming.has(process)) liftWritten()
    },
    ended: ({ process }) => forgetUnwritten(process),
  })
}
