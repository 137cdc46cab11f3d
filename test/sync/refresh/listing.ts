import { type ErrorCode, JobError } from '../../../src/errors.ts'
import type { End, WrittenAnswer } from '../../../src/sync/refresh/ends.ts'
import { afterFullWalk, readEnds, type RefreshState } from '../../../src/sync/refresh/state.ts'
import { fullWalk } from '../../helpers/full-walk.ts'

/** An item, and its row of the mirror. */
interface ListedRow {
  id: number
  seen: { firstAt: number; changedAt: number } | null
  /** Since it was read. */
  hasChanged: boolean
}

export interface Refreshing {
  /** The configured newest end; the right one, if nothing is said. */
  newest?: End | 'auto'
  /** Before the request of this number, from 1 on; `'killed'` kills the refresh. */
  before?: (request: number) => unknown
  /** Leaves something out of what the answers say. */
  spoil?: (answer: WrittenAnswer<number>) => WrittenAnswer<number>
  /** With what pages past the end are refused; else they are empty. */
  refuses?: ErrorCode
}

const PER_PAGE = 25

/** A list that the test moves, and a mirror of it that is refreshed. New items come at one end. */
export class Listing {
  rows: ListedRow[] = []
  readonly end: End
  /** Later with each answer and each refresh. */
  clock = 1000
  private nextId = 0
  private rowsAdded = 0

  constructor(end: End, count: number) {
    this.end = end
    this.add(count)
  }

  add(count: number): void {
    this.insert(this.end === 'first' ? 0 : this.rows.length, count)
  }

  /** The newest one stands where the newest end is. */
  insert(index: number, count = 1): number[] {
    const ids = Array.from({ length: count }, () => this.nextId++)
    const rows = ids.map((id) => ({ id, seen: null, hasChanged: false }))
    this.rows.splice(index, 0, ...(this.end === 'first' ? rows.toReversed() : rows))
    return ids
  }

  remove(index: number, count = 1): void {
    this.rows.splice(index, count)
  }

  change(from: number, count = 1): void {
    for (const row of this.rows.slice(from, from + count)) row.hasChanged = true
  }

  /** Changes in a list by update, of rows that stood in a row there: they stand at its end then. */
  move(from: number, count = 1): number[] {
    const moved = this.rows.splice(from, count)
    for (const row of moved) row.hasChanged = true
    if (this.end === 'last') this.rows.push(...moved)
    else this.rows.unshift(...moved)
    return moved.map(({ id }) => id)
  }

  /** Does what a text says of this request, or of none: `add 10, remove 0 60 at 3, add 1 at each`. */
  happen(moves: string, request = 0): void {
    const all = moves.matchAll(/(add|insert|remove|change|move) (\d+)(?: (\d+))?(?: at (\d+|each))?/g)
    for (const [, kind, from, count = 1, at = 0] of all)
      if (at === 'each' ? request > 0 : Number(at) === request)
        this[kind as 'remove'](Number(from), Number(count))
  }

  /** A complete full walk that nothing moves under. */
  walk(state: RefreshState | null = null): RefreshState {
    const startedAt = this.clock++
    const first = this.rowsAdded
    for (let page = 1; page <= this.lastPage; page++) this.read(page)
    const { lastPage, clock: endedAt } = this
    const totals = { first: this.rows.length, last: this.rows.length }
    const rowsAdded = { first, last: this.rowsAdded }
    return afterFullWalk(state, fullWalk({ startedAt, endedAt, lastPage, totals, rowsAdded }))
  }

  get lastPage(): number {
    return Math.max(1, Math.ceil(this.rows.length / PER_PAGE))
  }

  /** Rows of the list that were never read. */
  get missing(): number[] {
    return this.rows.filter(({ seen }) => seen === null).map(({ id }) => id)
  }

  /** Reads a page and writes it. */
  read(page: number): WrittenAnswer<number>['items'] {
    const at = ++this.clock
    const shown = this.rows.slice((page - 1) * PER_PAGE, page * PER_PAGE)
    for (const row of shown) {
      if (row.seen === null) this.rowsAdded++
      if (row.seen === null || row.hasChanged) row.seen = { firstAt: row.seen?.firstAt ?? at, changedAt: at }
      row.hasChanged = false
    }
    return shown.map(({ id, seen }) => ({ id, seen }))
  }

  /** Its state, null where it was killed; the pages that it asked for, in their order; and how each end was read. */
  refresh(
    state: RefreshState,
    { newest = this.end, before, spoil = (answer) => answer, refuses }: Refreshing = {},
  ): { state: RefreshState | null; asked: number[]; outcomes: string[] } {
    this.clock += 1000
    const asked: number[] = []
    const reading = readEnds<number>(state, newest, this.clock)
    let step = reading.next()
    while (!step.done) {
      const page = step.value
      if (asked.length > 400) throw new Error('the refresh does not end')
      if (before?.(asked.length + 1) === 'killed') return { state: null, asked, outcomes: [] }
      asked.push(page)
      if (refuses && page > this.lastPage) {
        step = reading.throw(new JobError(refuses, 'no such page'))
        continue
      }
      const items = this.read(page)
      const { lastPage, clock: at, rowsAdded } = this
      const next = page < lastPage ? page + 1 : null
      const total = this.rows.length
      step = reading.next(spoil({ page, at, next, lastPage, items, total, rowsAdded, rejected: 0 }))
    }
    const { state: after, done } = step.value
    return { state: after, asked, outcomes: done.map(({ outcome }) => outcome) }
  }
}
