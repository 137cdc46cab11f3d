import { counted, grouped } from '../../text.ts'
import type { Coverage } from '../types.ts'
import type { Steps, WalkFacts, WalkRules } from './question.ts'
import { PassReading } from './read-pass.ts'

/**
 * Changes with each change of what a walk asks for: a walk that another version of this code began cannot be played through it again, and
 * begins anew.
 */
export const READING_VERSION = 4

/** A list that was read to its end. */
export interface Reading {
  /** `incomplete`: it ended before its own total or last page in every pass, though nothing moved. */
  kind: 'complete' | 'incomplete'
  coverage: Coverage | null
  /** What does not add up, if drifted or incomplete. */
  why: string | null
  /** Distinct items of the last pass. */
  distinct: number
  /** The whole list came in one answer, so that nothing can have moved during the reading. */
  cameAtOnce: boolean
  /** The last page that was read says that there are more. */
  isShort: boolean
  repeatedAcrossPages: boolean
  /** The first total and the last one; null: the list cannot be counted by its total. */
  totals: { first: number | null; last: number | null }
  lastPage: number
  /** Items were found in front of what was read. */
  grewInFront: boolean
}

/**
 * Reads a list, in as many passes as its coverage needs. Throws BAD_RESPONSE if it does not end.
 * @param name The list, in errors.
 * @param onPass Hears why the list is read once more.
 */
export function* readList(
  rules: WalkRules,
  walk: WalkFacts,
  name: string,
  onPass: (why: string) => void,
): Steps<Reading> {
  let grewInFront = false
  for (;;) {
    walk.pass++
    const hasMoved = rules.lastCoverage === 'drifted' || rules.lastCoverage === 'repaired'
    const pass = new PassReading(walk, rules, hasMoved || walk.moved || walk.totalChanged)
    yield* pass.read(name)
    walk.moved ||= pass.moved
    grewInFront ||= pass.foundInFront > 0
    const { answers, distinct, isShort } = pass
    const { places, counted: hasTotals, repeatedAcrossPages, lastPage } = walk
    const verdict = judgePass(pass, { ...walk, seen: places.size }, rules)
    if (verdict.kind === 'again') {
      onPass(verdict.why)
      continue
    }
    return {
      ...verdict,
      distinct,
      cameAtOnce: walk.pass === 1 && answers === 1 && !isShort,
      isShort,
      repeatedAcrossPages,
      totals: hasTotals ? { first: walk.firstTotal, last: walk.lastTotal } : { first: null, last: null },
      lastPage,
      grewInFront,
    }
  }
}

/** What a pass has come to at its end. `isSettled`: its movements are all explained. */
export type PassEnd = Pick<
  PassReading,
  'moved' | 'answers' | 'distinct' | 'repeated' | 'total' | 'isSettled' | 'isShort'
>

/** What all passes have come to. `seen`: distinct items. */
export type WalkEnd = Pick<WalkFacts, 'pass' | 'counted' | 'moved' | 'totalChanged'> & { seen: number }

export type Verdict =
  /** `why`: what does not add up; of `drifted` alone. */
  | { kind: 'complete'; coverage: Coverage | null; why: string | null }
  | { kind: 'again'; why: string }
  | { kind: 'incomplete'; coverage: null; why: string }

/**
 * Judges the end of a pass. An equal number of items proves a pass only if nothing moved: one that slid past the reader and a new one cancel
 * out. Steady: a first pass without movement. Repaired: a later pass without one, or any pass whose movements are all explained.
 */
export function judgePass(end: PassEnd, walk: WalkEnd, rules: WalkRules): Verdict {
  const { distinct, repeated, total } = end
  if (rules.kind === 'partial') return complete(null)
  const isShort = end.isShort && rules.total === 'check'
  const still = complete(walk.pass === 1 ? 'steady' : 'repaired')
  // A single answer cannot have moved; the total counts its duplicates, too.
  if (!end.isShort && end.answers === 1 && distinct + repeated >= (total ?? 0)) return still
  if (!isShort && (!walk.counted || rules.total === 'ignore')) return complete(null)
  if (!isShort && !end.moved && distinct === total) return still
  const isWhole = !isShort && walk.pass > 1 && !walk.totalChanged && walk.seen === total
  if (isWhole || (end.moved && end.isSettled && !end.isShort && end.answers > 1)) return complete('repaired')
  const why = inWords(end, walk)
  const isIncomplete = !walk.totalChanged && !walk.moved && (distinct < (total ?? 0) || isShort)
  // After a walk that drifted, another pass would most probably show the same.
  if (walk.pass < rules.maxPasses && (isIncomplete || rules.lastCoverage !== 'drifted'))
    return { kind: 'again', why }
  return isIncomplete ? { kind: 'incomplete', coverage: null, why } : complete('drifted', why)
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
