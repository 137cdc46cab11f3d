import { counted, grouped } from '../../text.ts'
import type { Coverage } from '../types.ts'

/** What a pass has come to at its end. */
export interface PassEnd {
  /** Whether the list moved during this pass. */
  moved: boolean
  answers: number
  /** Distinct items, and those that came twice. */
  distinct: number
  repeated: number
  /** As the pass said first; null: it named none. */
  total: number | null
  /** All movements are explained: see `isSettled` of `PassReading`. */
  isSettled: boolean
  /** The list ended before the last page that it names. */
  isShort: boolean
}

/** What all passes of the walk have come to. */
export interface WalkEnd {
  pass: number
  /** Distinct items. */
  distinct: number
  counted: boolean
  moved: boolean
  totalChanged: boolean
}

export interface VerdictRules {
  kind: 'full' | 'partial'
  total: 'check' | 'ignore'
  maxPasses: number
  /** The job's last walk drifted: another pass would most probably show the same. */
  hasDrifted: boolean
}

export type Verdict =
  /** `why`: what does not add up; of `drifted` alone. */
  | { kind: 'complete'; coverage: Coverage | null; why: string | null }
  | { kind: 'again'; why: string }
  | { kind: 'incomplete'; why: string }

/**
 * Judges the end of a pass. An equal number of items proves a pass only if nothing moved: one that slid past the reader and a new one cancel
 * out. Steady: a first pass without movement. Repaired: a later pass without one, or any pass whose movements are all explained.
 */
export function judgePass(end: PassEnd, walk: WalkEnd, rules: VerdictRules): Verdict {
  const { distinct, repeated, total } = end
  if (rules.kind === 'partial') return complete(null)
  const isShort = end.isShort && rules.total === 'check'
  const still = complete(walk.pass === 1 ? 'steady' : 'repaired')
  // A single answer cannot have moved; the total counts its duplicates, too.
  if (!end.isShort && end.answers === 1 && distinct + repeated >= (total ?? 0)) return still
  if (!isShort && (!walk.counted || rules.total === 'ignore')) return complete(null)
  if (!isShort && !end.moved && distinct === total) return still
  const isWhole = !isShort && walk.pass > 1 && !walk.totalChanged && walk.distinct === total
  if (isWhole || (end.moved && end.isSettled && !end.isShort && end.answers > 1)) return complete('repaired')
  const why = inWords(end, walk)
  const isIncomplete = !walk.totalChanged && !walk.moved && (distinct < (total ?? 0) || isShort)
  if (walk.pass < rules.maxPasses && (isIncomplete || !rules.hasDrifted)) return { kind: 'again', why }
  return isIncomplete ? { kind: 'incomplete', why } : complete('drifted', why)
}

function complete(coverage: Coverage | null, why: string | null = null): Verdict {
  return { kind: 'complete', coverage, why }
}

/** What does not add up. */
function inWords({ distinct, total, repeated, isShort }: PassEnd, { totalChanged }: WalkEnd): string {
  const of = total === null ? '' : ` of a total of ${grouped(total)}`
  const twice = repeated > 0 ? `, ${grouped(repeated)} of them twice` : ''
  const change = totalChanged ? ', and the total changed meanwhile' : ''
  const short = isShort ? ', and the last page says that there are more pages' : ''
  return `${counted(distinct, 'item')} came${of}${twice}${change}${short}`
}
