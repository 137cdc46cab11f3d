import { JobError } from '../../errors.ts'
import { counted, grouped } from '../../text.ts'
import { isRejectId } from '../items.ts'
import type { LedgerEntry } from '../store.ts'
import type { Coverage } from '../types.ts'
import { type Answer, Pass, type Question, type Steps, WalkFacts, type WalkRules } from './pass.ts'
import { readPass } from './read-pass.ts'

/**
 * Changes with each change of what a walk asks for: a walk that another version of this code began cannot be played through it again, and
 * begins anew.
 */
export const READING_VERSION = 9

/** So many pages in a row without a new item, and as many as were read before, are a circle. What a list says of its length may grow with it. */
const CIRCLE_PAGES = 1000

/** A walk's reading of its list, as far as it has come. It lives in memory alone: the page ledger has all that it was told. */
export class WalkReading extends WalkFacts {
  /** What it asks for next; null: the list is read. */
  question: Question | null = null
  /** What came of it; null while it reads. */
  result: WalkResult | null = null
  answers = 0
  /** Distinct items with a usable key. */
  keyed = 0
  /** Of a list that grew in front: when a page that was asked for again first began with a new item, epoch milliseconds. Null: any other. */
  grewAt: number | null = null
  #beganAnewAt: number | null = null
  #name: string
  #steps: Steps<WalkResult>
  #wasResumed = false
  /** Answers up to the last one with a new item. */
  #newsAt = 0

  /** @param name The list, in errors. */
  constructor(rules: WalkRules, name: string) {
    super()
    this.#name = name
    this.#steps = readList(rules, this)
    this.#follow(this.#steps.next())
  }

  has(id: string): boolean {
    return this.places.has(id)
  }

  /** Takes the answer to its question, that was read at this time; returns its line of the page ledger. Throws BAD_RESPONSE if the list does not end. */
  take(answer: Answer, at: number): LedgerEntry {
    if (!this.question) throw new Error('a walk that asks for no page takes no answer')
    const { pass } = this
    const { why } = this.question
    if (why === 'forward') this.#assertNoCircle(answer)
    const [first] = answer.ids
    if (why !== 'forward' && first !== undefined && this.places.of(first) === undefined) {
      this.#beganAnewAt ??= at
      if (why === 'front') this.grewAt = this.#beganAnewAt
    }
    this.keyed += answer.ids.filter((id) => !this.has(id) && !isRejectId(id)).length
    const resumed = this.#wasResumed
    this.#wasResumed = false
    this.again = null
    this.#follow(this.#steps.next(answer))
    return { ...answer, ordinal: ++this.answers, pass, why, resumed, at }
  }

  /** Tells that another process goes on from here. To say so twice before an answer changes nothing. */
  resume(): void {
    if (!this.question || this.#wasResumed) return
    this.#wasResumed = true
    this.#follow(this.#steps.next('resumed'))
  }

  #follow(step: IteratorResult<Question, WalkResult>): void {
    this.question = step.done ? null : step.value
    if (step.done) this.result = step.value
  }

  #assertNoCircle({ ids, next }: Answer): void {
    const answers = this.answers + 1
    if (next === null || ids.some((id) => this.places.of(id) === undefined)) this.#newsAt = answers
    const without = answers - this.#newsAt
    if (without < Math.max(CIRCLE_PAGES, this.#newsAt)) return
    const circle = `the last ${counted(without, 'page')} brought nothing new`
    throw new JobError('BAD_RESPONSE', `${this.#name}: the list does not end: ${circle}`)
  }
}

/** A list that was read to its end. */
export interface WalkResult extends Verdict {
  kind: 'complete' | 'incomplete'
  /** Distinct items of the last pass. */
  distinct: number
  /** The whole list came in one answer, so that nothing can have moved during the reading. */
  cameAtOnce: boolean
  /** The last page that was read says that there are more. */
  isShort: boolean
  repeatedAcrossPages: boolean
}

/** Reads a list, in as many passes as its coverage needs. */
function* readList(rules: WalkRules, walk: WalkFacts): Steps<WalkResult> {
  const hasMoved = rules.lastCoverage === 'drifted' || rules.lastCoverage === 'repaired'
  for (;;) {
    walk.pass++
    const pass = new Pass(walk, rules, hasMoved || walk.moved || walk.totalChanged)
    yield* readPass(pass)
    walk.moved ||= pass.moved
    const { kind, ...verdict } = judgePass(pass, walk, rules)
    if (kind === 'again') {
      walk.again = verdict.why
      continue
    }
    const { answers, distinct, isShort } = pass
    const cameAtOnce = walk.pass === 1 && answers === 1 && !isShort
    return { kind, ...verdict, distinct, cameAtOnce, isShort, repeatedAcrossPages: walk.repeatedAcrossPages }
  }
}

/** What a pass has come to at its end. `isSettled`: its movements are all explained. */
export type PassEnd = Pick<
  Pass,
  'moved' | 'answers' | 'distinct' | 'repeated' | 'total' | 'rises' | 'isSettled' | 'isShort'
>

/** What all passes have come to. */
export type WalkEnd = Pick<WalkFacts, 'pass' | 'items' | 'counted' | 'moved' | 'totalChanged' | 'totals'>

export interface Verdict {
  /** `incomplete`: it ended before its own total or last page in every pass, though nothing moved. */
  kind: 'complete' | 'again' | 'incomplete'
  coverage: Coverage | null
  /** What does not add up, if anything. */
  why: string | null
}

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
  if (!isShort && !walk.counted) return complete(null)
  if (!isShort && !end.moved && distinct === total) return still
  const isWhole = !isShort && walk.pass > 1 && !walk.totalChanged && walk.items === total
  // What the total counts beyond the items that came must have come meanwhile.
  const isAccounted = distinct + end.rises >= (walk.totals.last ?? 0)
  const isExplained = end.moved && end.isSettled && isAccounted && !end.isShort && end.answers > 1
  if (isWhole || isExplained) return complete('repaired')
  const why = inWords(end, walk)
  const isIncomplete = !walk.totalChanged && !walk.moved && (distinct < (total ?? 0) || isShort)
  // After a walk that drifted, another pass would most probably show the same.
  if (walk.pass < rules.maxPasses && (isIncomplete || rules.lastCoverage !== 'drifted'))
    return { kind: 'again', coverage: null, why }
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
