import type { RefreshAnswer, RefreshRow } from '../../../src/sync/refresh/end-reading.ts'
import type { End, RefreshRules } from '../../../src/sync/refresh/ends.ts'
import { advanceRefresh, beginRefresh, finishRefresh, pagesRead } from '../../../src/sync/refresh/refresh.ts'
import { afterFullWalk, type RefreshState } from '../../../src/sync/refresh/state.ts'

interface ListedRow {
  id: number
  version: number
}

interface KnownRow {
  firstAt: number
  changedAt: number
  version: number
}

export interface Refreshed {
  /** Null where the refresh was killed. */
  state: RefreshState | null
  /** The pages that were asked for, in their order. */
  asked: number[]
  outcomes: (string | null)[]
  /** From the end where new items come inwards. */
  pagesRead: number
}

export interface Refreshing {
  rules?: Partial<RefreshRules>
  /** Before the request of this number, from 1 on; `'killed'` kills the refresh. */
  before?: (request: number) => unknown
  /** Leaves something out of what the answers say. */
  spoil?: (answer: RefreshAnswer) => RefreshAnswer
}

/** A list of 25 items a page, if nothing else is said, that the test moves, and a mirror of it that is refreshed. New items come at one end. */
export class Listing {
  rows: ListedRow[] = []
  readonly known = new Map<number, KnownRow>()
  readonly end: End
  /** Later with each answer and each refresh. */
  clock = 1000
  private nextId = 0

  private readonly perPage: number

  constructor(end: End, count: number, perPage = 25) {
    this.end = end
    this.perPage = perPage
    this.add(count)
  }

  add(count: number): number[] {
    const added = Array.from({ length: count }, () => ({ id: this.nextId++, version: 0 }))
    if (this.end === 'last') this.rows.push(...added)
    else this.rows.unshift(...added.toReversed())
    return added.map(({ id }) => id)
  }

  insert(index: number): number {
    const id = this.nextId++
    this.rows.splice(index, 0, { id, version: 0 })
    return id
  }

  remove(index: number, count = 1): void {
    this.rows.splice(index, count)
  }

  change(from: number, count = 1): void {
    for (const row of this.rows.slice(from, from + count)) row.version++
  }

  /** A change in a list by update. */
  moveToEnd(index: number): number | null {
    const [row] = this.rows.splice(index, 1)
    if (!row) return null
    row.version++
    if (this.end === 'last') this.rows.push(row)
    else this.rows.unshift(row)
    return row.id
  }

  /** A complete full walk that nothing moves under. */
  walk(state: RefreshState | null = null): RefreshState {
    const startedAt = this.clock++
    for (let page = 1; page <= this.lastPage; page++) this.read(page)
    const { lastPage, clock: endedAt } = this
    const totals = { first: this.rows.length, last: this.rows.length }
    return afterFullWalk(state, {
      scope: '',
      startedAt,
      endedAt,
      lastPage,
      totals,
      isSteady: true,
      rowsAdded: { first: 0, last: 0 },
    })
  }

  get lastPage(): number {
    return Math.max(1, Math.ceil(this.rows.length / this.perPage))
  }

  get missing(): number[] {
    return this.rows.map(({ id }) => id).filter((id) => !this.known.has(id))
  }

  /** Asks for a page and writes it. */
  read(page: number, met: ReadonlyMap<number, number> = new Map()): RefreshRow[] {
    const at = ++this.clock
    return this.rows.slice((page - 1) * this.perPage, page * this.perPage).map((row) => {
      const before = this.known.get(row.id)
      const isSame = before?.version === row.version
      const seen = { firstAt: before?.firstAt ?? at, changedAt: isSame ? before.changedAt : at }
      this.known.set(row.id, { ...seen, version: row.version })
      return { seen, metIn: met.get(row.id) ?? null }
    })
  }

  refresh(
    state: RefreshState,
    { rules = {}, before, spoil = (answer) => answer }: Refreshing = {},
  ): Refreshed {
    const all: RefreshRules = { total: 'check', newest: this.end, ...rules }
    this.clock += 1000
    let refresh = beginRefresh(state, all, this.clock)
    let met = new Map<number, number>()
    const asked: number[] = []
    while (refresh.reading) {
      const { ask, answers, end } = refresh.reading
      if (ask === null) throw new Error('the reading asks for nothing')
      if (asked.length > 400) throw new Error('the refresh does not end')
      if (before?.(asked.length + 1) === 'killed') return { state: null, asked, outcomes: [], pagesRead: 0 }
      asked.push(ask)
      const rows = this.read(ask, met)
      for (const row of this.pageOf(ask)) met.set(row.id, answers + 1)
      refresh = advanceRefresh(state, all, refresh, spoil(this.answer(ask, rows, state)))
      if (refresh.reading?.end !== end) met = new Map()
    }
    const after = finishRefresh(state, all, refresh, this.clock, this.foundSince(state.settledAt))
    return {
      state: after,
      asked,
      outcomes: refresh.done.map(({ outcome }) => outcome),
      pagesRead: pagesRead(refresh, this.end),
    }
  }

  private answer(page: number, rows: RefreshRow[], { settledAt }: RefreshState): RefreshAnswer {
    const { lastPage, clock: at } = this
    const next = page < lastPage ? page + 1 : null
    return { page, at, total: this.rows.length, next, lastPage, rows, found: this.foundSince(settledAt) }
  }

  private pageOf(page: number): ListedRow[] {
    return this.rows.slice((page - 1) * this.perPage, page * this.perPage)
  }

  private foundSince(time: number): number {
    return [...this.known.values()].filter(({ firstAt }) => firstAt > time).length
  }
}
