import { counted, grouped } from '../../text.ts'
import type { Checkpoint, Coverage } from '../types.ts'
import type { CoverageState, WalkRules } from './state.ts'
import { isSwinging, isTotalWrong, offBy } from './totals.ts'

export interface PassRules extends WalkRules {
  maxPasses: number
}

export type Verdict =
  /** `why`: what did not come out even, where it is `drifted`. */
  | { kind: 'complete'; coverage: Coverage | null; why?: string }
  | { kind: 'again'; why: string }
  | { kind: 'incomplete'; why: string }

/**
 * What the end of a pass means. `distinct` counts the items of the whole walk. That the sums agree proves a reading only
 * where nothing moved meanwhile: an item that slid past the reader and one that came in its place cancel out. A first
 * pass in which nothing moved is steady. One that moved is repaired where its accounts are settled, and so is a later one
 * in which nothing moved.
 */
export function judgePass(checkpoint: Checkpoint, distinct: number, rules: PassRules): Verdict {
  const { pass, account } = checkpoint
  const { passDistinct, passRepeated } = account
  if (rules.kind === 'partial') return { kind: 'complete', coverage: null }
  const total = account.passTotal ?? 0
  const isShort = account.passShort && rules.total === 'check'
  const still: Verdict = { kind: 'complete', coverage: pass === 1 ? 'steady' : 'repaired' }
  // In one answer nothing can have moved; what stands there twice is counted twice by the total, too.
  if (!account.passShort && account.passAnswers === 1 && passDistinct + passRepeated >= total) return still
  if (!isShort && (!account.counted || rules.total === 'ignore')) return { kind: 'complete', coverage: null }
  if (!isShort && !account.passMoved && passDistinct === total) return still
  const isWhole = !isShort && pass > 1 && !account.totalChanged && distinct === total
  if (isWhole || isSettled(account)) return { kind: 'complete', coverage: 'repaired' }
  const why = movement(account)
  const isStill = !account.totalChanged && !account.moved
  const isIncomplete = isStill && (passDistinct < total || isShort)
  const isHopeless = isTotalWrong(account) && !isIncomplete
  if (pass < rules.maxPasses && !isHopeless) return { kind: 'again', why }
  if (isIncomplete) return { kind: 'incomplete', why }
  return { kind: 'complete', coverage: 'drifted', why: `${why}${hint(account)}` }
}

/** Every item that came twice is explained by one that came, every one that was moved by one that was found in its place. */
function isSettled(account: CoverageState): boolean {
  const { passMoved, passShort, unsettled, unpaid, found, wanderers, foundBehind, passAnswers } = account
  if (!passMoved || passShort || unsettled || passAnswers === 1) return false
  return unpaid <= found && wanderers <= foundBehind
}

/** What the total has to do with it. Once it is off, it may be by chance; more items than a total that never changes are none. */
function hint(account: CoverageState): string {
  const { totalChanged, passDistinct, passTotal } = account
  const isTooLow = !totalChanged && passTotal !== null && passDistinct > passTotal
  if (isTotalWrong(account)) return `; ${wrongness(account)}, so nothing can be counted by it`
  return isTooLow ? '; if the total is never right, set total: ignore' : ''
}

function wrongness(account: CoverageState): string {
  const { answers, turns } = account.totals
  if (isSwinging(account))
    return `the total went up and down, ${grouped(turns)} times in ${counted(answers, 'answer')}`
  const off = offBy(account) ?? 0
  const much = `${grouped(Math.abs(off))} too ${off > 0 ? 'high' : 'low'}`
  return `the total is not the number of items that are listed, reading after reading (${much} in the last)`
}

function movement(account: CoverageState): string {
  const total = account.passTotal === null ? '' : ` of a total of ${grouped(account.passTotal)}`
  const seen = `${counted(account.passDistinct, 'item')} came${total}`
  const repeats = account.passRepeated > 0 ? `, ${grouped(account.passRepeated)} of them twice` : ''
  const short = account.passShort ? ', and the last page says that there are more pages' : ''
  const change = account.totalChanged ? ', and the total changed meanwhile' : ''
  return `${seen}${repeats}${change}${short}`
}
