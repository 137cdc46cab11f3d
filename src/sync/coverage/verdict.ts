import { counted, grouped } from '../../text.ts'
import type { Checkpoint, Coverage, WalkOutcome } from '../types.ts'
import type { CoverageState, Totals, WalkRules } from './state.ts'

export interface PassRules extends WalkRules {
  maxPasses: number
}

type Verdict =
  /** `why`: what does not add up; for `drifted` only. */
  | { kind: 'complete'; coverage: Coverage | null; why?: string }
  | { kind: 'again'; why: string }
  | { kind: 'incomplete'; why: string }

/**
 * Judges the end of a pass; `distinct`: items of the whole walk. An equal number proves a pass only if nothing moved: an
 * item that slid past the reader and a new one cancel out. Steady: a first pass without movement. Repaired: a later
 * pass without movement, or any pass whose movements are all explained.
 */
export function judgePass(checkpoint: Checkpoint, distinct: number, rules: PassRules): Verdict {
  const { pass, state } = checkpoint
  const { passDistinct, passRepeated } = state
  if (rules.kind === 'partial') return { kind: 'complete', coverage: null }
  const total = state.passTotal ?? 0
  const isShort = state.passShort && rules.total === 'check'
  const still: Verdict = { kind: 'complete', coverage: pass === 1 ? 'steady' : 'repaired' }
  // A single answer cannot have moved; the total counts its duplicates, too.
  if (!state.passShort && state.passAnswers === 1 && passDistinct + passRepeated >= total) return still
  if (!isShort && (!state.counted || rules.total === 'ignore')) return { kind: 'complete', coverage: null }
  if (!isShort && !state.passMoved && passDistinct === total) return still
  const isWhole = !isShort && pass > 1 && !state.totalChanged && distinct === total
  if (isWhole || isSettled(state)) return { kind: 'complete', coverage: 'repaired' }
  const why = movement(state)
  const isStill = !state.totalChanged && !state.moved
  const isIncomplete = isStill && (passDistinct < total || isShort)
  const isHopeless = isTotalWrong(state) && !isIncomplete
  if (pass < rules.maxPasses && !isHopeless) return { kind: 'again', why }
  if (isIncomplete) return { kind: 'incomplete', why }
  return { kind: 'complete', coverage: 'drifted', why: `${why}${hint(state)}` }
}

/** Whether items found by asking again explain every repeated item, and every moved one. */
function isSettled(state: CoverageState): boolean {
  const { passMoved, passShort, unsettled, unexplained, found, relocated, foundBehind, passAnswers } = state
  if (!passMoved || passShort || unsettled || passAnswers === 1) return false
  return unexplained <= found && relocated <= foundBehind
}

/** Advice about the total. A pass may be off by chance, but not one with more items than a constant total. */
function hint(state: CoverageState): string {
  const { totalChanged, passDistinct, passTotal } = state
  const isTooLow = !totalChanged && passTotal !== null && passDistinct > passTotal
  if (isTotalWrong(state)) return `; ${wrongness(state)}, so it proves nothing`
  return isTooLow ? '; if the total is never right, set total: ignore' : ''
}

function wrongness(state: CoverageState): string {
  const { answers, turns } = state.totals
  if (isSwinging(state))
    return `the total went up and down, ${grouped(turns)} times in ${counted(answers, 'answer')}`
  const off = offBy(state) ?? 0
  const much = `${grouped(Math.abs(off))} too ${off > 0 ? 'high' : 'low'}`
  return `the total is not the number of items that are listed, reading after reading (${much} in the last)`
}

function movement(state: CoverageState): string {
  const total = state.passTotal === null ? '' : ` of a total of ${grouped(state.passTotal)}`
  const seen = `${counted(state.passDistinct, 'item')} came${total}`
  const repeats = state.passRepeated > 0 ? `, ${grouped(state.passRepeated)} of them twice` : ''
  const short = state.passShort ? ', and the last page says that there are more pages' : ''
  const change = state.totalChanged ? ', and the total changed meanwhile' : ''
  return `${seen}${repeats}${change}${short}`
}

/** Returns the totals at the start of the next pass. */
export function totalsOfNextPass(state: CoverageState): Totals {
  return { ...state.totals, listed: 0, isDoubted: isOff(state) }
}

/** The total of a moving list seldom changes its direction, a few times more by chance; a random total does so most of the time. */
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
