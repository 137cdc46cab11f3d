import type { HeldRemovals, WalkClosing } from '../../sync/store.ts'
import type { Job } from '../../sync/types.ts'
import { recordColumns } from './column-counts.ts'
import { confirmScope, heldRemovals, namesOf, saveRefresh } from './jobs.ts'
import { holdMissing, isOverlapped, removeMissing } from './missing.ts'
import { addRemoved } from './runs.ts'
import type { Dialect, Keys, Rule } from './sql.ts'
import { abandonWalk, completeWalk } from './walks.ts'

export interface Closing extends Pick<WalkClosing, 'outcome' | 'removals' | 'refresh'> {
  job: Job
  walkId: number
  kind: 'full' | 'partial'
  runId: number
  at: string
}

/** Ends a walk: removes rows or holds them back, completes or abandons it. `keys`: null without tables. */
export function* closeWalk(
  dialect: Dialect,
  keys: Keys | null,
  { job, walkId, kind, runId, outcome, removals, refresh, at }: Closing,
): Rule<{ heldBack: HeldRemovals | null }> {
  if (outcome === null) {
    yield* abandonWalk(walkId, at)
    return { heldBack: yield* heldRemovals(job) }
  }
  if (removals === 'remove') yield* addRemoved(runId, yield* removeMissing(dialect, keys, job, at))
  else if (removals !== 'none') yield* holdMissing(job, removals.hold === 'earlier' ? null : removals.hold)
  if (kind === 'full' && outcome.untrusted === null)
    yield* confirmScope(job, yield* isOverlapped(dialect, job, walkId))
  yield* completeWalk(walkId, runId, outcome, at)
  if (kind === 'full') yield* recordColumns(dialect, namesOf(job), walkId)
  if (refresh) yield* saveRefresh(job, refresh)
  return { heldBack: yield* heldRemovals(job) }
}
