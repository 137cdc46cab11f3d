import { afterWalked, newestInterval, type RefreshPace, takeOwed } from '../../../src/sync/refresh/due.ts'
import type { RefreshRules } from '../../../src/sync/refresh/ends.ts'
import { readEnds } from '../../../src/sync/refresh/read-ends.ts'
import { afterFullWalk, type CompleteWalk, type RefreshState } from '../../../src/sync/refresh/state.ts'
import type { ServedPage } from './living-list.ts'
import type { Steps } from './workers.ts'

/** A page as it is read and written: one request. */
export type ReadPage = (page: number) => Steps<WrittenPage>

export interface WrittenPage extends ServedPage {
  seen: readonly ({ firstAt: number; changedAt: number } | null)[]
  added: number
  changed: number
  /** Epoch milliseconds. */
  at: number
}

/** One list with nothing but the program's decisions. Times are epoch milliseconds. */
export interface ListPlayer {
  state(): RefreshState
  pace: RefreshPace
  /** Reads the newest end. False where its process is killed in the middle; nothing but the rows is kept then. */
  refresh(now: number, price: number, isKilled: () => boolean): Steps<boolean>
  /** Reads an older page that is owed by now. False: none is. */
  readOlder(price: number, chunk: number, now: number): Steps<boolean>
  onWalkedPage(page: WrittenPage, number: number, price: number): void
  onWalk(walk: Omit<CompleteWalk, 'scope' | 'rowsAdded'>): void
}

const RULES: RefreshRules = { total: 'check', newest: 'auto' }

export function createListPlayer(
  timing: Omit<RefreshPace, 'newest'>,
  readPage: ReadPage,
  first: Omit<CompleteWalk, 'scope' | 'rowsAdded'>,
): ListPlayer {
  const pace: RefreshPace = { ...timing, newest: RULES.newest }
  // `found` counts what is new by its time.
  const walked = (walk: typeof first) => ({ scope: '', rowsAdded: { first: 0, last: 0 }, ...walk })
  let state = afterFullWalk(null, walked(first))
  let added: { at: number; count: number }[] = []

  function* read(number: number): Steps<WrittenPage> {
    const page = yield* readPage(number)
    if (page.added > 0) added.push({ at: page.at, count: page.added })
    return page
  }

  const found = (since: number) => added.reduce((sum, { at, count }) => sum + (at > since ? count : 0), 0)

  /** Null where its process is killed in the middle. */
  function* readNewest(
    before: RefreshState,
    now: number,
    isKilled: () => boolean,
  ): Steps<RefreshState | null> {
    const reading = readEnds<number>(before, RULES, now)
    let step = reading.next()
    while (!step.done) {
      const ask = step.value
      const page = yield* read(ask)
      if (isKilled()) return null
      const { total, lastPage, at, added: came, changed } = page
      const items = page.ids.map((id, index) => ({ id, seen: page.seen[index] ?? null }))
      const next = ask < lastPage ? ask + 1 : null
      const written = { added: came, changed }
      step = reading.next({ at, total, next, lastPage, items, written, found: found(before.settledAt) })
    }
    return step.value.state
  }

  return {
    state: () => state,
    pace,
    *refresh(now, price, isKilled) {
      const before = { ...state, triedAt: now }
      state = before
      const after = yield* readNewest(before, now, isKilled)
      const interval = after && newestInterval(after, pace, price)
      state = { ...(after ?? before), interval }
      added = added.filter(({ at }) => at > state.settledAt)
      return after !== null
    },
    *readOlder(price, chunk, now) {
      const owed = takeOwed(state, pace, price, chunk, now)
      if (owed.page) {
        const page = yield* read(owed.page.number)
        state = owed.page.after(page)
      } else state = owed.state
      return owed.page !== null
    },
    onWalkedPage(page, number, price) {
      if (page.added > 0) added.push({ at: page.at, count: page.added })
      state = afterWalked(state, pace, price, { number, found: page.added + page.changed }, page.at)
    },
    onWalk(walk) {
      state = afterFullWalk(state, walked(walk))
    },
  }
}
