import { counted, grouped } from '../../text.ts'
import type { Checkpoint, Coverage, WalkOutcome } from '../types.ts'
import { firstAnchor, SPAN } from './look-back.ts'
import type { CoverageState, Movement, Totals, WalkRules } from './state.ts'

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

/**
 * How many items a walk of this length misses on average if its list moves as this one did. 0 if steady; null if
 * drifted, or if nothing was counted.
 */
export function expectedMissed(coverage: Coverage | null, state: CoverageState): number | null {
  if (coverage === 'steady') return 0
  if (coverage !== 'repaired' || state.movement === null) return null
  const { newToWalk } = state.movement
  // Earlier passes saw most of what this pass missed: the same share as of what this pass saw.
  const share = state.passDistinct > 0 ? newToWalk / state.passDistinct : 0
  // A difference of nearly equal floats: if it is negative, or below 1e-9, it is rounding.
  const missed = Math.max(0, missedInPass(state, state.movement) * share)
  return missed < 1e-9 ? 0 : Number(missed.toPrecision(3))
}

/**
 * An item is skipped unnoticed if one behind the reader is deleted and, before the next answer, another one is added
 * ahead (the total stays), or pushes it away from where a step back looks. Looks back find it, unless none reaches so
 * far back, or an item between the two ends of the look left as well, so that the distances agree. test/simulation/README.md compares
 * the estimate with what walks really miss.
 */
function missedInPass(state: CoverageState, movement: Movement): number {
  const rates = ratesOf(state, movement)
  const { pages, watched, window } = spansOf(state)
  const before = 1 - watched / pages
  const { anywhere, pulled, openGaps } = rates
  // Skipped where no look reaches.
  const early = (pulled - anywhere / 2) * before + (anywhere / 2) * before ** 2
  // Items leave from between the ends of a look, which are half a window apart on average.
  const gone = (anywhere * window) / 2 / pages
  const moved = (2 * rates.pushed * window) / 2 / pages
  const partBetween = gone + pulled > 0 ? gone / (gone + pulled) : 0
  // The part of skipped items that a look does not find.
  const stays = 1 - (1 - partBetween) * Math.exp((-(gone + moved) * window) / watched)
  const skipped = Math.max(0, pulled - early) * openGaps
  // Weighted mean of two estimates: by movement (1), and found plus still hidden (2).
  const found = Math.max(0, movement.skips - state.relocated)
  const hidden = (skipped * (1 + 2 * stays) + 2 * found) / 3
  return hidden * stays + early * openGaps + ofGroups(state, movement, window / pages, before)
}

/**
 * Items skipped together, when many left at once: a look finds as many as the distances differ, so as many fewer as
 * left from between its ends. Those stay missed if they are on the page next to the others. Where no look reaches,
 * all stay.
 */
function ofGroups({ perPage }: CoverageState, { together }: Movement, gone: number, before: number): number {
  if (!perPage) return 0
  return together * (gone / perPage + before ** 2 / (1 - before ** 2))
}

/** The movements of a pass, corrected for those that stayed unseen. `openGaps`: those that can hide a skip, per gap between two answers. */
function ratesOf({ passAnswers, askedAgain }: CoverageState, { rises, falls, pulled, pushes }: Movement) {
  const gaps = Math.max(1, passAnswers - askedAgain)
  // A second movement in the same gap may stay unseen: half of a gap that showed one was open to others.
  const more = gaps / Math.max(1, gaps - (rises + falls + pushes) / 2)
  return {
    pulled: pulled * more,
    // Deletions anywhere: half of the falls are ahead of the reader. Only behind: the front of the list is deleted.
    anywhere: Math.min(falls, 2 * (falls - pulled)) * more,
    pushed: pushes * more,
    openGaps: ((rises + pushes) * more) / gaps,
  }
}

/** Pages of the list, those that looks back cover, and those between two looks. */
function spansOf(state: CoverageState) {
  const pages = Math.max(2, state.lastPage)
  const watched = pages - firstAnchor({ lastPage: pages })
  return { pages, watched, window: Math.min(SPAN, watched) }
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
