import type { ErrorCode } from '../../../src/errors.ts'
import { knownOfJobs, listenWith } from '../happening.ts'
import type { SimulatedProcess } from '../process.ts'
import type { OracleContext } from './context.ts'
import type { Finding } from './ledger.ts'

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

/** Who was cut off from the mirror, or stood still, may have lost its jobs to another. */
export function mayBeOvertaken({ was }: SimulatedProcess): boolean {
  return was.cut || was.halted
}

/**
 * Promise 5: never two processes at work on one job, and none that finds a job busy which nobody living has. Who is overtaken writes nothing from then on.
 */
export function watchOwners({ now, wasLockedSince, complain, note }: OracleContext) {
  const jobs = knownOfJobs(() => ({
    /** Who has lost the job to another; how often it has asked for a page since. */
    overtaken: new Map<SimulatedProcess, number>(),
    /** Until they begin to let go of it. */
    atWork: null as SimulatedProcess | null,
    /** Until they have let go of it, and longer where that could not be written. */
    owner: null as SimulatedProcess | null,
  }))
  const startedAt = new Map<SimulatedProcess, number>()

  const isOvertaken = (process: SimulatedProcess, job: string) => jobs.of(job).overtaken.has(process)

  const hear = listenWith<Finding>({
    started: ({ process }) => startedAt.set(process, now()),
    claimed({ process, job }) {
      const known = jobs.of(job)
      const other = known.atWork
      if (other?.isAlive() && other !== process) {
        if (!mayBeOvertaken(other))
          complain(`${process.name} takes a job that ${other.name} is at work on`, job)
        note('overtaken')
        known.overtaken.set(other, 0)
      }
      known.overtaken.delete(process)
      known.atWork = process
      known.owner = process
    },
    saved({ inHand: { request } }) {
      if (isOvertaken(request.process, request.job))
        complain(`${request.process.name} writes a page of a job that it has lost`, request.job)
    },
    'walk changed'({ process, job }) {
      if (isOvertaken(process, job)) complain(`${process.name} writes a walk of a job that it has lost`, job)
    },
    busy({ process, job }) {
      // Who stands still, or waits for the server, may do so between its lock and its claim.
      const others = [...startedAt.keys()].filter((one) => one !== process && one.isAlive())
      if (!jobs.of(job).owner?.isAlive() && !others.some(mayBeOvertaken))
        complain(`${process.name} finds a job busy that nobody living has`, job)
    },
    sent({ request: { process, job } }) {
      const { atWork, overtaken } = jobs.of(job)
      if (atWork === process) return
      const unaware = overtaken.get(process) ?? MOST_UNAWARE
      if (overtaken.has(process)) overtaken.set(process, unaware + 1)
      if (unaware >= MOST_UNAWARE)
        complain(`${process.name} asks for a page of a job that it does not have`, job)
    },
    releasing({ process, job }) {
      if (jobs.of(job).atWork === process) jobs.of(job).atWork = null
    },
    'job ended'({ process, job, code }) {
      if (code !== null && UNFOUNDED.includes(code)) complain(`${process.name} ends with ${code}`, job)
      const known = jobs.of(job)
      const wasLocked = wasLockedSince(startedAt.get(process) ?? now())
      if (code === 'DATABASE' && !wasLocked)
        complain(`${process.name} cannot use a mirror that is sound`, job)
      if (code !== 'DATABASE' && known.owner === process && !wasLocked) known.owner = null
    },
    over({ process }) {
      for (const known of jobs.all()) {
        if (known.atWork === process) known.atWork = null
        if (known.owner === process) known.owner = null
      }
    },
  })
  return { hear, isOvertaken }
}
