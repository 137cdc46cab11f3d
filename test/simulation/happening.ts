import type { ErrorCode } from '../../src/errors.ts'
import type { Job } from '../../src/sync/types.ts'
import type { Command } from './commands.ts'
import type { Change, ListFilters, ListPage, Movement } from './list.ts'
import type { SimulatedProcess, StepOfProcess } from './process.ts'

// What all are told of, in the moment in which it happens: the world, the oracle, the story, the counts. A job is named by organization and collection.

/** Which end of a list is configured to be the newest. */
export type Newest = 'auto' | 'first' | 'last'

/** What somebody does from outside. */
export type Deed =
  | { kind: 'start'; command: Command; blows: AimedBlow[] }
  /** To one of the processes that live, as if somebody had thrown dice. */
  | { kind: 'strike'; which: number; blow: Blow }
  | { kind: 'change'; job: string; change: Change }
  /** So many of all requests meet a fault from now on. */
  | { kind: 'weather'; faults: number }
  | { kind: 'token set'; token: string; isValid: boolean }
  | { kind: 'token replaced'; organization: string; after: string }
  /** Somebody outside holds the mirror's write lock for so long, or its server is away. */
  | { kind: 'locked'; ms: number }
  /** Who starts from now on is configured with these filters, or this newest end. */
  | { kind: 'filters changed'; filters: ListFilters }
  | { kind: 'newest changed'; newest: Newest }
  /** The clock of all processes goes back. */
  | { kind: 'clock set'; ms: number }

/** What happens to a process from outside. */
export type Blow =
  | 'kill'
  | 'signal'
  /** Its connections to the mirror's server are cut, or it stands still for so long, as after SIGSTOP; or both. */
  | { isCut: boolean; standsMs: number }
  /** The clock of its machine, and not that of the mirror's server, goes on, or back. */
  | { clockMs: number }

/** A blow at the so-manieth step of its kind, or so long after the start. */
export type AimedBlow = { blow: Blow } & ({ step: StepOfProcess; count: number } | { ms: number })

/** What a page is asked for by. */
export type Reader = 'walk' | 'refresh'

/** A request as the server's own log has it. */
export interface Request {
  /** From 1, in the order they left. */
  number: number
  process: SimulatedProcess
  token: string
  job: string
  page: number
  filters: ListFilters
  reader: Reader
}

/** What becomes of a request on the server's side, and on the way back. A page is null where the answer is none, or breaks off. */
export type Outcome =
  | { kind: 'answer'; status: number; headers: Headers; body: string; page: ListPage | null }
  | { kind: 'reset' }
  /** Nothing comes back, ever. */
  | { kind: 'silence' }

export type Headers = Record<string, string>

interface OfJob {
  process: SimulatedProcess
  job: string
}

export type HappeningOf<Kind extends Happening['kind']> = Happening & { kind: Kind }

export type Happening =
  | Deed
  | { kind: 'list changed'; job: string; change: Change; movement: Movement }
  /** `gave up`: the process waits for the answer no more. */
  | { kind: 'sent' | 'gave up'; request: Request }
  /** `delivered`: the answer, or the network's failure, has reached its process, which lives. */
  | { kind: 'served' | 'delivered'; request: Request; outcome: Outcome }
  | { kind: 'started' | 'committed' | 'signalled' | 'cut off'; process: SimulatedProcess }
  | { kind: 'halted' | 'own clock set'; process: SimulatedProcess; ms: number }
  | { kind: 'killed'; process: SimulatedProcess; where: string }
  /** `error`: what the command failed with as a whole, or null. */
  | { kind: 'ended'; process: SimulatedProcess; error: unknown }
  /** `releasing`: it begins to let go of the job. */
  | (OfJob & { kind: 'claimed' | 'busy' | 'releasing' })
  | (OfJob & { kind: 'run began'; run: number; walk: number; resumed: boolean })
  /** `within`: the run of the walk that gives way; null: none does. */
  | (OfJob & { kind: 'refresh began'; run: number; within: number | null; filters: ListFilters })
  | (OfJob & { kind: 'run finished' | 'refresh finished'; run: number; status: string; code: string | null })
  | { kind: 'run cancelled'; process: SimulatedProcess; run: number }
  | (OfJob & { kind: 'waits'; reason: string; until: number })
  | (OfJob & { kind: 'job ended'; code: ErrorCode | null; message: string })
  /** The command `resume` has done its work. */
  | { kind: 'resumed'; process: SimulatedProcess; organizations: readonly string[] }

export type Tell = (happening: Happening) => void

/** One of several things that may be told. */
interface Told extends Partial<OfJob> {
  kind: string
  request?: Request
}

/** `ears`: what somebody does about what concerns him. */
export function listenWith<All extends Told = Happening>(ears: {
  [Kind in All['kind']]?: (told: All & { kind: Kind }) => unknown
}): (told: All) => void {
  return (told) => {
    const hear: ((told: All) => unknown) | undefined = ears[told.kind as All['kind']]
    hear?.(told)
  }
}

/** Who did it, and to which job, where it says so. */
export function concernOf(told: Told): Pick<Told, 'process' | 'job'> {
  return told.request ?? told
}

export function jobName(organization: string, collection: string): string {
  return `${organization} ${collection}`
}

export function splitJob(job: string): [organization: string, collection: string] {
  const [organization = '', collection = ''] = job.split(' ')
  return [organization, collection]
}

export function nameOf({ organization, collection }: Job): string {
  return jobName(organization.id, collection.name)
}

/** What is known of each job; made when it is asked for first. */
export function knownOfJobs<Value>(make: () => Value) {
  const known = new Map<string, Value>()
  return {
    of(job: string): Value {
      const value = known.get(job) ?? make()
      known.set(job, value)
      return value
    },
    all: () => [...known.values()],
  }
}
