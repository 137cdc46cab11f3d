import type { Coverage } from '../types.ts'
import type { ListRules, Question, Reply, WalkFacts } from './question.ts'
import { PassReading } from './read-pass.ts'
import { judgePass } from './verdict.ts'

/**
 * Changes with each change of what a walk asks for: a walk that another version of this code began cannot be played through it again, and
 * begins anew.
 */
export const READING_VERSION = 2

/** How a walk reads its list: fixed at its start, and kept with it. */
export interface WalkRules extends ListRules {
  maxPasses: number
  /** How the job's last complete full walk ended; null: there is none. */
  lastCoverage: Coverage | null
}

/** `again`: what did not add up in the pass before; null but for the first question of a further pass. */
export type ListQuestion = Question & { pass: number; again: string | null }

/** A list that was read to its end. */
export interface Reading {
  /** `incomplete`: it ended before its own total or last page in every pass, though nothing moved. */
  kind: 'complete' | 'incomplete'
  coverage: Coverage | null
  /** What does not add up, if drifted or incomplete. */
  why: string | null
  passes: number
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

/** Reads a list, in as many passes as its coverage needs. Throws BAD_RESPONSE if it does not end. @param name The list, in errors. */
export function* readList(
  { maxPasses, lastCoverage, ...rules }: WalkRules,
  walk: WalkFacts,
  name: string,
): Generator<ListQuestion, Reading, Reply> {
  const hasDrifted = lastCoverage === 'drifted'
  const hasMoved = hasDrifted || lastCoverage === 'repaired'
  let again: string | null = null
  for (let pass = 1; ; pass++) {
    const firstPage = pass === 1 ? rules.firstPage : 1
    const watching = hasMoved || walk.moved || walk.totalChanged
    const reading = new PassReading(walk, rules, firstPage, watching, name)
    const steps = reading.read()
    for (let step = steps.next(); !step.done; ) {
      step = steps.next(yield { ...step.value, pass, again })
      again = null
    }
    walk.moved ||= reading.moved
    walk.grewInFront ||= reading.foundInFront > 0
    const { places, counted, moved, totalChanged } = walk
    const end = { pass, distinct: places.size, counted, moved, totalChanged }
    const verdict = judgePass(reading, end, { ...rules, maxPasses, hasDrifted })
    if (verdict.kind === 'again') again = verdict.why
    else {
      const { distinct, isShort, answers } = reading
      const { repeatedAcrossPages, lastPage, firstTotal: first, lastTotal: last } = walk
      return {
        kind: verdict.kind,
        coverage: verdict.kind === 'complete' ? verdict.coverage : null,
        why: verdict.why,
        passes: pass,
        distinct,
        cameAtOnce: pass === 1 && answers === 1 && !isShort,
        isShort,
        repeatedAcrossPages,
        totals: counted ? { first, last } : { first: null, last: null },
        lastPage,
        grewInFront: walk.grewInFront,
      }
    }
  }
}
