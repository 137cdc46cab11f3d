import type { JobResult } from '../../src/sync/job.ts'
import type { RunOutcome, RunRecord } from '../../src/sync/store.ts'
import type { Job } from '../../src/sync/types.ts'
import type { Change, ListFilters, Movement } from './list.ts'
import type { SimulatedProcess } from './process.ts'
import type { Newest } from './setting.ts'
import type { Outcome, Request } from './traffic.ts'

/** One thing that happens, as the oracle, the story and the counts are told of it in that moment. */
export type Happening =
  | { kind: 'started'; process: SimulatedProcess; command: string }
  | { kind: 'sent'; request: Request }
  | { kind: 'served'; request: Request; outcome: Outcome }
  /** The answer, or the network's failure, has reached its process, which lives. */
  | { kind: 'delivered'; request: Request; outcome: Outcome }
  /** The process waits for the answer no more. */
  | { kind: 'gave up'; request: Request }
  | { kind: 'committed'; process: SimulatedProcess }
  | { kind: 'claimed'; process: SimulatedProcess; job: Job }
  | { kind: 'busy'; process: SimulatedProcess; job: Job }
  /** It begins to let go of the job. */
  | { kind: 'releasing'; process: SimulatedProcess; job: Job }
  | { kind: 'run began'; process: SimulatedProcess; job: Job; run: number; walk: number; resumed: boolean }
  | {
      kind: 'run finished'
      process: SimulatedProcess
      job: Job
      run: number
      outcome: RunOutcome
      record: RunRecord
    }
  /** `within`: the run of the walk that gives way; null: none does. */
  | { kind: 'refresh began'; process: SimulatedProcess; job: Job; run: number; within: number | null }
  | {
      kind: 'refresh finished'
      process: SimulatedProcess
      job: Job
      run: number
      outcome: RunOutcome
      record: RunRecord
    }
  | { kind: 'run cancelled'; process: SimulatedProcess; run: number }
  | { kind: 'waits'; process: SimulatedProcess; job: Job; reason: string; until: number }
  | { kind: 'job ended'; process: SimulatedProcess; result: JobResult }
  /** The command `resume` has done its work. */
  | { kind: 'resumed'; process: SimulatedProcess; organizations: readonly string[] }
  | { kind: 'token replaced'; organization: string; before: string; after: string }
  /** Somebody outside holds the mirror's write lock for so long. */
  | { kind: 'locked'; ms: number }
  | { kind: 'killed'; process: SimulatedProcess; where: string }
  /** Its connections to the mirror's server are gone, and their locks. */
  | { kind: 'cut off'; process: SimulatedProcess }
  | { kind: 'halted'; process: SimulatedProcess; ms: number }
  | { kind: 'signalled'; process: SimulatedProcess }
  /** `error`: what the command failed with as a whole, or null. */
  | { kind: 'ended'; process: SimulatedProcess; error: unknown }
  | { kind: 'list changed'; job: string; change: Change; movement: Movement }
  /** Who starts from now on is configured with these filters. */
  | { kind: 'filters changed'; filters: ListFilters }
  /** Who starts from now on is configured with this newest end. */
  | { kind: 'newest changed'; newest: Newest }
  /** The clock of all processes was set. */
  | { kind: 'clock set'; ms: number }
  /** The clock of its machine was set, and that of the server was not. */
  | { kind: 'own clock set'; process: SimulatedProcess; ms: number }
  | { kind: 'server'; what: string }

export type HappeningOf<Kind extends Happening['kind']> = Extract<Happening, { kind: Kind }>

export type Tell = (happening: Happening) => void

/** What somebody does about the happenings that concern him. */
export type Ears = { [Kind in Happening['kind']]?: (happening: HappeningOf<Kind>) => void }

export function listenWith(ears: Ears): Tell {
  return (happening) => {
    const hear = ears[happening.kind] as Tell | undefined
    hear?.(happening)
  }
}
