import { JobError } from '../errors.ts'
import { counted, grouped, shellWord } from '../text.ts'
import type { Account } from './coverage/account.ts'
import type { Coverage, Job, Walk } from './types.ts'

/** What the configuration and the command say of removals. */
export interface RemovalRules {
  /** More due in one walk than both, percent of the job's live rows and rows, are held back. */
  brakePercent: number
  brakeRows: number
  /** `--accept-removals`: what would be held back, or is, goes. */
  accept: boolean
}

/** The live rows that a trusted walk did not see, counted. */
export interface Missing {
  /** Missed often enough to go, and not held back yet. */
  due: number
  held: number
  /** Live rows of the job, and items of the walk that could be placed. */
  live: number
  listed: number
}

/** Why rows were held back: more than the brake lets go, or a list without items. */
export type HoldReason = 'brake' | 'empty'

/** `hold` goes first where both are said: a process that dies on the way leaves held back what it has not removed. */
export interface RemovalDecision {
  /** Why all that is due is held back; `earlier`: because some rows are already. */
  hold: HoldReason | 'earlier' | null
  remove: boolean
}

/** The rows of a job that are held back, of how many live ones, and why. */
export interface HeldRemovals {
  rows: number
  live: number
  why: HoldReason
}

/** Whether what a complete walk did not see may count as gone. `newRejects`: items without a usable key that came for the first time. */
export function isTrusted(
  { kind }: Pick<Walk, 'kind'>,
  { crossed }: Pick<Account, 'crossed'>,
  coverage: Coverage | null,
  newRejects: number,
): boolean {
  if (kind === 'partial' || newRejects > 0 || coverage === 'drifted') return false
  return coverage !== null || !crossed
}

/** Whether the list came in one answer, of which nothing can have moved while it was read. */
export function cameAtOnce({ passAnswers, passShort }: Pick<Account, 'passAnswers' | 'passShort'>): boolean {
  return passAnswers === 1 && !passShort
}

/** What becomes of the rows that a trusted walk found missing. */
export function decideRemovals(missing: Missing, rules: RemovalRules): RemovalDecision {
  const { due, held } = missing
  if (due + held === 0) return { hold: null, remove: false }
  const hold = held > 0 ? 'earlier' : holdReason(missing, rules)
  return { hold, remove: hold === null || rules.accept }
}

function holdReason(
  { due, live, listed }: Missing,
  { brakePercent, brakeRows }: RemovalRules,
): HoldReason | null {
  if (listed === 0) return 'empty'
  return due > brakeRows && due * 100 > live * brakePercent ? 'brake' : null
}

/** What a complete run says as long as removals are held back. */
export function heldError({ organization, collection }: Job, held: HeldRemovals): JobError {
  const reason =
    held.why === 'empty'
      ? 'the list came without items'
      : 'removals.brakePercent and brakeRows let fewer go at once'
  return new JobError(
    'REMOVALS_HELD',
    `${organization.name} ${collection.name}: ${grouped(held.rows)} of ${counted(held.live, 'row')} left the list and are held back, ` +
      `since ${reason}. If they are to go: ${acceptCommand(organization.name, collection.name)}`,
  )
}

function acceptCommand(organization: string, collection: string): string {
  return `admin-mirror sync --org ${shellWord(organization)} --collection ${shellWord(collection)} --accept-removals`
}
