import { counted, grouped } from '../../text.ts'
import type { Checkpoint, Coverage } from '../types.ts'
import type { CoverageState, WalkRules } from './state.ts'
import { isSwinging, isTotalWrong, offBy } from './totals.ts'

export interface PassRules extends WalkRules {
  maxPasses: number
}

export type Verdict =
  /** `why`: what does not add up; for `drifted` only. */
  | { kind: 'complete'; coverage: Coverage | null; why?: string }
  | { kind: 'again'; why: string }
  | { kind: 'incomplete'; why: string }

/**
 * Judges the end of a pass; `distinct`: items of the whole walk. Equal sums prove a pass only if nothing moved: an
 * item that slid past the reader and a new one cancel out. Steady: a first pass without movement. Repaired: a later
 * one without, or one whose movements are all explained.
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
  if (isTotalWrong(state)) return `; ${wrongness(state)}, so nothing can be counted by it`
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
