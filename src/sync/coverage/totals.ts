import type { Coverage, WalkOutcome } from '../types.ts'
import type { CoverageState, Totals } from './state.ts'

export const NO_TOTALS: Totals = {
  answers: 0,
  last: null,
  change: 0,
  turns: 0,
  listed: 0,
  listedLast: 0,
  end: null,
  isDoubted: false,
}

/** Returns the totals at the start of the next pass. */
export function totalsOfNextPass(state: CoverageState): Totals {
  const { listed } = NO_TOTALS
  return { ...state.totals, listed, isDoubted: isOff(state) }
}

/** The total of a moving list turns rarely, a few times more by chance; a random one turns most of the time. */
const TURNS = 0.2
const BY_CHANCE = 0.5
const ENOUGH = 20

/** Whether the total goes up and down whatever the list does; then asking again proves nothing. */
export function isSwinging({ totals: { answers, turns } }: Pick<CoverageState, 'totals'>): boolean {
  return answers >= ENOUGH && turns > answers * TURNS + Math.sqrt(answers) * BY_CHANCE
}

/**
 * The last total of the pass minus the items that it listed; null if not known. Movement does not explain a
 * difference: an item that slides past the reader leaves its place to a repeated one.
 */
export function offBy({ totals: { listed, end } }: Pick<CoverageState, 'totals'>): number | null {
  return listed === null || end === null ? null : end - listed
}

function isOff(state: Pick<CoverageState, 'totals'>): boolean {
  return (offBy(state) ?? 0) !== 0
}

/** Whether the total is useless, so that another pass would show the same: it swings, or was off twice in a row. */
export function isTotalWrong(state: Pick<CoverageState, 'totals' | 'passShort'>): boolean {
  if (state.passShort) return false
  return isSwinging(state) || (state.totals.isDoubted && isOff(state))
}

/** What a complete walk says about its total: null unless the walk drifted. */
export function totalOff(
  coverage: Coverage | null,
  state: Pick<CoverageState, 'totals' | 'passShort'>,
): WalkOutcome['totalOff'] {
  if (coverage !== 'drifted') return null
  if (isTotalWrong(state)) return 'again'
  return isOff(state) ? 'once' : null
}
