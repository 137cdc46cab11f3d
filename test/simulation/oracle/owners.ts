import type { ErrorCode } from '../../../src/errors.ts'
import type { Job } from '../../../src/sync/types.ts'
import { listenWith, type Tell } from '../happening.ts'
import type { SimulatedProcess } from '../process.ts'
import { jobName } from '../traffic.ts'
import { createStock, type OracleContext, splitJob } from './context.ts'

/** What no history gives a reason for. */
const UNFOUNDED: readonly ErrorCode[] = [
  'INTERNAL',
  'INCOMPLETE',
  'LINK_REFUSED',
  'BAD_REQUEST',
  'CONFIGURATION',
  'REMOVALS_HELD',
  'UNEXPECTED_STATUS',
]

/** Requests that who is overtaken may send before it hears of it: it asks for a page before it writes the last one. */
const MOST_UNAWARE = 3

export interface Owners {
  tell: Tell
  /** A page of this job was written, just now. */
  onSaved(process: SimulatedProcess, job: string): void
  /** Whether another process has taken this one's job over. */
  isOvertaken(process: SimulatedProcess, job: string): boolean
}

/**
 * Never two processes at work on one job, and none that finds a job busy which nobody living has. Who was cut off from the
 * mirror may be overtaken, and writes nothing from then on.
 */
export function watchOwners({ now, wasLockedSince, mirror, complain, note }: OracleContext): Owners {
  /** Who was cut off while it had the job, and has lost it to another; how often it has asked for a page since. */
  const overtaken = new Map<string, Map<SimulatedProcess, number>>()
  /** Until they begin to let go of it. */
  const atWork = new Map<string, SimulatedProcess>()
  /** Until they have let go of it, and longer where that could not be written. */
  const owners = new Map<string, SimulatedProcess>()
  const since = new Map<SimulatedProcess, number>()
  /** By job that somebody has lost, its walks as they were after the last commit of anybody. */
  const walksOf = createStock((_job: string) => new Map<number, string>())

  function onClaimed(process: SimulatedProcess, job: string): void {
    const other = atWork.get(job)
    if (other?.isAlive() && other !== process && other.wasCut()) {
      note('overtaken')
      overtaken.set(job, (overtaken.get(job) ?? new Map<SimulatedProcess, number>()).set(other, 0))
      changedWalks(job)
    } else if (other?.isAlive()) complain(`${process.name} takes a job that ${other.name} is at work on`, job)
    atWork.set(job, process)
    overtaken.get(job)?.delete(process)
    owners.set(job, process)
  }

  /** Those that are new, or other than at the last look. */
  function changedWalks(job: string): number[] {
    const known = walksOf.of(job)
    const walks = mirror.rows(
      'SELECT id, status, pages, updated_at FROM sync_walks WHERE organization_id = ? AND collection = ?',
      ...splitJob(job),
    )
    return walks.flatMap((walk) => {
      const [id, text] = [Number(walk.id), JSON.stringify(walk)]
      const isSame = known.get(id) === text
      known.set(id, text)
      return isSame ? [] : [id]
    })
  }

  function onCommitted(process: SimulatedProcess): void {
    for (const job of overtaken.keys()) {
      const [walk] = changedWalks(job)
      if (walk !== undefined && isOvertaken(process, job))
        complain(`${process.name} writes walk ${walk} of a job that it has lost`, job)
    }
  }

  function onBusy(process: SimulatedProcess, job: string): void {
    const owner = owners.get(job)
    // Who stands still, or waits for the server, may do so between its lock and its claim.
    const mayBeBetween = [...since.keys()].some(
      (one) => one !== process && one.isAlive() && (one.wasHalted() || one.wasCut()),
    )
    if (!owner?.isAlive() && !mayBeBetween)
      complain(`${process.name} finds a job busy that nobody living has`, job)
  }

  function onSent(process: SimulatedProcess, job: string): void {
    if (atWork.get(job) === process) return
    const unaware = overtaken.get(job)?.get(process)
    if (unaware !== undefined) overtaken.get(job)?.set(process, unaware + 1)
    if (unaware === undefined || unaware >= MOST_UNAWARE)
      complain(`${process.name} asks for a page of a job that it does not have`, job)
  }

  function onJobEnded(process: SimulatedProcess, job: string, code: ErrorCode | undefined): void {
    if (code !== undefined && UNFOUNDED.includes(code)) complain(`${process.name} ends with ${code}`, job)
    const wasLocked = wasLockedSince(since.get(process) ?? now())
    if (code === 'DATABASE' && !wasLocked) complain(`${process.name} cannot use a mirror that is sound`, job)
    if (code !== 'DATABASE' && owners.get(job) === process && !wasLocked) owners.delete(job)
  }

  function onEnd(process: SimulatedProcess): void {
    for (const all of [atWork, owners]) for (const [job, one] of all) if (one === process) all.delete(job)
  }

  function isOvertaken(process: SimulatedProcess, job: string): boolean {
    return overtaken.get(job)?.has(process) === true
  }

  function onSaved(process: SimulatedProcess, job: string): void {
    if (isOvertaken(process, job)) complain(`${process.name} writes a page of a job that it has lost`, job)
  }

  const tell = listenWith({
    started({ process }) {
      since.set(process, now())
    },
    claimed: ({ process, job }) => onClaimed(process, nameOf(job)),
    committed: ({ process }) => onCommitted(process),
    busy: ({ process, job }) => onBusy(process, nameOf(job)),
    sent: ({ request }) => onSent(request.process, request.job),
    releasing({ process, job }) {
      if (atWork.get(nameOf(job)) === process) atWork.delete(nameOf(job))
    },
    'job ended': ({ process, result }) => onJobEnded(process, nameOf(result.job), result.error?.code),
    killed: ({ process }) => onEnd(process),
    ended: ({ process }) => onEnd(process),
  })
  return { tell, onSaved, isOvertaken }
}

function nameOf({ organization, collection }: Job): string {
  return jobName(organization.id, collection.name)
}
