import type { ErrorCode } from '../../../src/errors.ts'
import type { Job } from '../../../src/sync/types.ts'
import { listenWith, type Tell } from '../happening.ts'
import type { SimulatedProcess } from '../process.ts'
import { jobName } from '../traffic.ts'
import type { OracleContext } from './context.ts'

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

/** Never two processes at work on one job, and none that finds a job busy which nobody living has. */
export function watchOwners({ now, wasLockedSince, complain }: OracleContext): Tell {
  /** Until they begin to let go of it. */
  const atWork = new Map<string, SimulatedProcess>()
  /** Until they have let go of it, and longer where that could not be written. */
  const owners = new Map<string, SimulatedProcess>()
  const since = new Map<SimulatedProcess, number>()

  function onClaimed(process: SimulatedProcess, job: string): void {
    const other = atWork.get(job)
    if (other?.isAlive()) complain(`${process.name} takes a job that ${other.name} is at work on`, job)
    atWork.set(job, process)
    owners.set(job, process)
  }

  function onBusy(process: SimulatedProcess, job: string): void {
    const owner = owners.get(job)
    if (!owner?.isAlive()) complain(`${process.name} finds a job busy that nobody living has`, job)
  }

  function onSent(process: SimulatedProcess, job: string): void {
    if (atWork.get(job) !== process)
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

  return listenWith({
    started({ process }) {
      since.set(process, now())
    },
    claimed: ({ process, job }) => onClaimed(process, nameOf(job)),
    busy: ({ process, job }) => onBusy(process, nameOf(job)),
    sent: ({ request }) => onSent(request.process, request.job),
    releasing({ job }) {
      atWork.delete(nameOf(job))
    },
    'job ended': ({ process, result }) => onJobEnded(process, nameOf(result.job), result.error?.code),
    killed: ({ process }) => onEnd(process),
    ended: ({ process }) => onEnd(process),
  })
}

function nameOf({ organization, collection }: Job): string {
  return jobName(organization.id, collection.name)
}
