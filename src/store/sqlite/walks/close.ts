import type { ClosedWalk, WalkClosing } from '../../../sync/store.ts'
import type { Job } from '../../../sync/types.ts'
import type { Connection } from '../sql.ts'
import { createJobStore } from './jobs.ts'
import { holdMissing, isOverlapped, removeMissing } from './missing.ts'
import { createRunStore } from './runs.ts'
import { createWalkStore } from './walks.ts'

export interface CloseArgument extends Pick<WalkClosing, 'outcome' | 'removals'> {
  job: Job
  walkId: number
  kind: 'full' | 'partial'
  runId: number
  at: string
}

/** Ends a walk inside the caller's transaction: removes rows or holds them back, and completes or abandons it. */
export function closeWalk(
  connection: Connection,
  { job, walkId, kind, runId, outcome, removals, at }: CloseArgument,
): ClosedWalk {
  const jobs = createJobStore(connection)
  const walks = createWalkStore(connection)
  if (outcome === null) {
    walks.abandon(walkId, at)
    return { held: jobs.held(job) }
  }
  if (removals === 'remove') createRunStore(connection).addRemoved(runId, removeMissing(connection, job, at))
  else if (removals !== 'none')
    holdMissing(connection, job, removals.hold === 'earlier' ? null : removals.hold)
  if (kind === 'full' && outcome.untrusted === null) jobs.confirm(job, isOverlapped(connection, job, walkId))
  walks.complete(walkId, outcome, at)
  return { held: jobs.held(job) }
}
