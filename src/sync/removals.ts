import { JobError } from '../errors.ts'
import { counted, grouped, jobName, shellWord } from '../text.ts'
import type { WalkResult } from './coverage/read-list.ts'
import type { HeldRemovals, MissingCounts, Removals } from './store.ts'
import type { Job } from './types.ts'

// What becomes of a row that the list no longer shows. Only a trusted full walk judges it, at its end (`endWalk`):
// - missed: one such walk did not see it. The next walk or refresh that sees it makes it an ordinary row again.
// - removable: two such walks did not see it; or one, if the list came in one answer.
// - removed: gone from the tables, with a last version in the history; or held back, if too many are removable, until a
//   person accepts that. The store keeps this state (`findMissing`, `closeWalk`); the decisions are here.

/** The removal settings of the configuration and the command. */
export interface RemovalRules {
  /** A walk's removals are held back if they exceed both: this percentage of the live rows, and `brakeRows`. */
  brakePercent: number
  brakeRows: number
  /** `--accept-removals`: also remove rows that are, or would be, held back. */
  accept: boolean
}

/**
 * Why a full walk is not trusted, so that rows it did not see are not missed; null if it is. `newRejects`: items
 * without a usable key that are new, each perhaps a row that lost its key.
 */
export function whyUntrusted(
  {
    coverage,
    why,
    isShort,
    repeatedAcrossPages,
  }: Pick<WalkResult, 'coverage' | 'why' | 'isShort' | 'repeatedAcrossPages'>,
  newRejects: number,
): string | null {
  if (newRejects > 0) return `${counted(newRejects, 'item')} without a usable key came for the first time`
  if (coverage === 'drifted') return why ?? 'it does not account for all items'
  if (coverage !== null) return null
  if (isShort) return 'the last page that it read says that there are more pages'
  return repeatedAcrossPages ? 'an item came on two pages, and there is no total to tell why' : null
}

/**
 * Decides what happens to the rows that a trusted walk found missing.
 * @param missing `listed`: items of the walk's last pass; or those of the whole walk with a usable key, if these are fewer.
 */
export function decideRemovals(
  { removable, held, live, listed }: MissingCounts & { listed: number },
  { brakePercent, brakeRows, accept }: RemovalRules,
): Removals {
  if (removable + held === 0) return 'none'
  if (accept) return 'remove'
  const isTooMuch = removable > brakeRows && removable * 100 > live * brakePercent
  return held > 0 || listed === 0 || isTooMuch ? 'hold' : 'remove'
}

/** Why rows left a list whose filters or path were changed; empty for any other. */
export function outOfScopeText({ rows, outOfScope }: Pick<HeldRemovals, 'rows' | 'outOfScope'>): string {
  if (outOfScope === 0) return ''
  const which = outOfScope === rows ? '' : `, ${grouped(outOfScope)} of them`
  return `${which} since its filters or its path were changed,`
}

/** Why rows are held back; a list without items has lost all of them. */
export const WHY_HELD =
  'so many left at once: more than removals.brakePercent and brakeRows allow, or all of them'

/** The error of a complete run while removals are held back. */
export function heldError(job: Job, held: HeldRemovals, untrusted: string | null): JobError {
  const { organization, collection } = job
  return new JobError(
    'REMOVALS_HELD',
    `${jobName(job)}: ${grouped(held.rows)} of ${counted(held.live, 'row')} left the list${outOfScopeText(held)} and are held back, ` +
      `since ${WHY_HELD}. ${untrusted ? `This reading is not trusted (${untrusted}), so none was removed. ` : ''}` +
      `If these rows really left the list, run: admin-mirror sync --org ${shellWord(organization.name)} ` +
      `--collection ${shellWord(collection.name)} --accept-removals`,
  )
}
