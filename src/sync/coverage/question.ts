import type { Coverage } from '../types.ts'
import { Places } from './places.ts'

/**
 * Why a page is asked for. `forward`: the next page in list order. `back`: the total fell, so earlier pages, until one holds a known item.
 * `rejoin`: the last page in list order, or where its last item stands now. `look`: an old page, to compare its distance with what was read.
 * `spot`: one page of a list that never moved. `front`: items added in front.
 */
export type Why = 'forward' | 'back' | 'rejoin' | 'look' | 'spot' | 'front'

/** What a walk asks for. */
export interface Question {
  page: number
  why: Why
  /** The next page in list order; null: the pass has read the list to its end. */
  next: number | null
  pass: number
}

/** What coverage is judged by: a page that was asked for, as the page ledger keeps it. */
export interface Answer {
  page: number
  /** Of its distinct items, in list order. */
  ids: readonly string[]
  /** How many items it has, with those that it lists twice. */
  items: number
  total: number | null
  next: number | null
  lastPage: number | null
}

/** `resumed`: the process that asked has died, and another one goes on from here, however much later. */
export type Reply = Answer | 'resumed'

/** A part of a walk: asks for pages, and returns what it was begun for. */
export type Steps<T> = Generator<Question, T, Reply>

/** How a walk reads its list: fixed at its start, and kept with it. */
export interface WalkRules {
  kind: 'full' | 'partial'
  firstPage: number
  total: 'check' | 'ignore'
  maxPasses: number
  /** How the job's last complete full walk ended; null: there is none. */
  lastCoverage: Coverage | null
}

/** What a walk knows of its list, in all its passes. */
export class WalkFacts {
  places = new Places()
  pass = 0
  /** False once an answer had no total. */
  counted = true
  /** The first total, and the last one. */
  firstTotal: number | null = null
  lastTotal: number | null = null
  /** A later total differed from the first one. */
  totalChanged = false
  /** An earlier pass saw the list move. */
  moved = false
  /** An item came on two pages of one pass. */
  repeatedAcrossPages = false
  /** The list's last page, as it said last. */
  lastPage = 0
}

/** Whether the list has become shorter than this page: Laravel then answers with 200, no items and no next page. */
export function isPastEnd({ page, ids, next, lastPage }: Answer): boolean {
  return ids.length === 0 && next === null && lastPage !== null && page > lastPage
}

/** How much the total rose; below 0 if it fell, 0 if one is missing. */
export function riseFrom(before: number | null | undefined, after: number | null): number {
  return before === null || before === undefined || after === null ? 0 : after - before
}
