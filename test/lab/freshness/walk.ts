import { PER_PAGE } from '../../../src/sync/refresh/price.ts'
import type { CompleteWalk } from '../../../src/sync/refresh/state.ts'
import type { Coverage } from '../../../src/sync/types.ts'
import { beginWalk as beginReading, type OpenWalk, takeAnswer } from '../coverage/walk-list.ts'
import type { WrittenPage } from './list-player.ts'
import type { Steps } from './workers.ts'

/** A full walk, page by page. */
export interface Walk extends OpenWalk {
  /** Minutes. */
  startedAt: number
  written: { added: number; changed: number }
}

/** As often a list is read at most, by default, until it stood still. */
const MOST_PASSES = 3

const MINUTE_MS = 60_000

export function beginWalk(startedAt: number, lastCoverage: Coverage | null): Walk {
  const lastWalk = { coverage: lastCoverage, totalOff: null }
  return { ...beginReading(lastWalk), startedAt, written: { added: 0, changed: 0 } }
}

export type EndedWalk = Omit<CompleteWalk, 'scope' | 'rowsAdded'> & { coverage: Coverage | null }

/** Reads the next page. Returns the walk once it is complete; else null. */
export function* readNext(
  walk: Walk,
  read: (page: number) => Steps<WrittenPage>,
  onPage: (page: WrittenPage, number: number) => void,
): Steps<EndedWalk | null> {
  const { ask } = walk.checkpoint
  if (!ask) throw new Error('a walk without a page to ask has not ended')
  const answer = yield* read(ask.page)
  const { added, changed } = walk.written
  walk.written = { added: added + answer.added, changed: changed + answer.changed }
  const verdict = takeAnswer(walk, ask, answer, { perPage: PER_PAGE, maxPasses: MOST_PASSES })
  onPage(answer, ask.page)
  // The next run begins again.
  if (verdict?.kind === 'incomplete') Object.assign(walk, beginReading(null))
  if (verdict?.kind !== 'complete') return null
  const { coverage } = verdict
  const { firstTotal, totals, lastPage } = walk.checkpoint.state
  return {
    startedAt: Math.round(walk.startedAt * MINUTE_MS),
    endedAt: answer.at,
    lastPage,
    totals: { first: firstTotal, last: totals.last },
    isSteady: coverage === 'steady',
    isDrifted: coverage === 'drifted',
    written: walk.written,
    coverage,
  }
}
