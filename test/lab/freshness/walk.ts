import type { CompleteWalk } from '../../../src/sync/refresh/state.ts'
import type { WrittenPage } from './list-player.ts'
import type { Steps } from './workers.ts'

/** A full walk, page by page. */
export interface Walk {
  /** Minutes. */
  startedAt: number
  page: number
  answers: number
  total: number | null
  isSteady: boolean
  written: { added: number; changed: number }
}

/** A walk of a list that moves asks so often for a page again, so far back. */
const LOOK_EVERY = 32
const LOOK_BACK = 64

const MINUTE_MS = 60_000

export function beginWalk(startedAt: number): Walk {
  return { startedAt, page: 1, answers: 0, total: null, isSteady: true, written: { added: 0, changed: 0 } }
}

/** Reads the next page. Returns the walk once it is complete; else null. */
export function* readNext(
  walk: Walk,
  read: (page: number) => Steps<WrittenPage>,
  onPage: (page: WrittenPage, number: number) => void,
): Steps<Omit<CompleteWalk, 'scope' | 'rowsAdded'> | null> {
  const number = walk.page
  const answer = yield* read(number)
  const { total, lastPage, at, added, changed } = answer
  const { written } = walk
  walk.page++
  walk.answers++
  walk.total ??= total
  walk.isSteady &&= walk.total === total
  walk.written = { added: written.added + added, changed: written.changed + changed }
  onPage(answer, number)
  if (!walk.isSteady && walk.answers % LOOK_EVERY === 0 && number > LOOK_BACK) yield* read(number - LOOK_BACK)
  if (number < lastPage) return null
  return {
    startedAt: Math.round(walk.startedAt * MINUTE_MS),
    endedAt: at,
    lastPage,
    totals: { first: walk.total, last: total },
    isSteady: walk.isSteady,
    written: walk.written,
  }
}
