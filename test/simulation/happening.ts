import type { ErrorCode } from '../../src/errors.ts'
import type { Job } from '../../src/sync/types.ts'
import type { Change, ListFilters, ListPage, Movement } from './list.ts'
import type { SimulatedProcess } from './process.ts'
import type { Newest } from './setting.ts'

// What the oracle, the story and the counts are told of, in the moment in which it happens. A job is named by organization and collection.

/** What a page is asked for by. */
export type Reader = 'walk' | 'refresh'

/** A request as the server's own log has it. */
export interface Request {
  /** From 1, in the order they left. */
  number: number
  process: SimulatedProcess
  token: string
  organization: string
  collection: string
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

export type Happening =
  | { kind: 'started'; process: SimulatedProcess; command: string }
  /** `gave up`: the process waits for the answer no more. */
  | { kind: 'sent' | 'gave up'; request: Request }
  /** `delivered`: the answer, or the network's failure, has reached its process, which lives. */
  | { kind: 'served' | 'delivered'; request: Request; outcome: Outcome }
  /** `cut off`: its connections to the mirror's server are gone, and their locks. */
  | { kind: 'committed' | 'signalled' | 'cut off'; process: SimulatedProcess }
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
  | { kind: 'token replaced'; organization: string; after: string }
  /** Somebody outside holds the mirror's write lock for so long, or its server is away. */
  | { kind: 'locked'; ms: number }
  | { kind: 'killed'; process: SimulatedProcess; where: string }
  | { kind: 'halted'; process: SimulatedProcess; ms: number }
  /** `error`: what the command failed with as a whole, or null. */
  | { kind: 'ended'; process: SimulatedProcess; error: unknown }
  | { kind: 'list changed'; job: string; change: Change; movement: Movement }
  /** Who starts from now on is configured with these filters, or this newest end. */
  | { kind: 'filters changed'; filters: ListFilters }
  | { kind: 'newest changed'; newest: Newest }
  /** The clock of all processes was set back; or that of one's machine, and not the server's. */
  | { kind: 'clock set'; ms: number }
  | { kind: 'own clock set'; process: SimulatedProcess; ms: number }
  | { kind: 'server'; what: string }

export type HappeningOf<Kind extends Happening['kind']> = Happening & { kind: Kind }

export type Tell = (happening: Happening) => void

/** What somebody does about the happenings that concern him. */
export type Ears = { [Kind in Happening['kind']]?: (happening: HappeningOf<Kind>) => unknown }

export function listenWith(ears: Ears): Tell {
  return (happening) => {
    const hear = ears[happening.kind] as Tell | undefined
    hear?.(happening)
  }
}

export function jobName(organization: string, collection: string): string {
  return `${organization} ${collection}`
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
    entries: () => [...known],
  }
}
