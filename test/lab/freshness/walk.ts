import { PER_PAGE } from '../../../src/sync/refresh/price.ts'
import type { CompleteWalk } from '../../../src/sync/refresh/state.ts'
import type { Coverage } from '../../../src/sync/types.ts'
import { answerOf, OpenWalk } from '../coverage/walk-list.ts'
import type { WrittenPage } from './list-player.ts'
import type { Steps } from './workers.ts'

/** A full walk, page by page. */
export interface Walk {
  reading: OpenWalk
  /** Minutes. */
  startedAt: number
  written: { added: number; changed: number }
}

/** As often a list is read at most, by default, until it stood still. */
const MOST_PASSES = 3

const MINUTE_MS = 60_000

export function beginWalk(startedAt: number, lastCoverage: Coverage | null): Walk {
  return { reading: new OpenWalk(lastCoverage, MOST_PASSES), startedAt, written: { added: 0, changed: 0 } }
}

export type EndedWalk = Omit<CompleteWalk, 'scope' | 'rowsAdded'> & { coverage: Coverage | null }

/** Reads the next page. Returns the walk once it is complete; else null. */
export function* readNext(
  walk: Walk,
  read: (page: number) => Steps<WrittenPage>,
  onPage: (page: WrittenPage, number: number) => void,
): Steps<EndedWalk | null> {
  const { question } = walk.reading
  if (!question) throw new Error('a walk without a page to ask has not ended')
  const answer = yield* read(question.page)
  const { added, changed } = walk.written
  walk.written = { added: added + answer.added, changed: changed + answer.changed }
  walk.reading.take(answerOf(question.page, answer, PER_PAGE))
  onPage(answer, question.page)
  const { reading: end } = walk.reading
  // The next run begins again.
  if (end?.kind === 'incomplete') walk.reading = new OpenWalk(null, MOST_PASSES)
  if (end?.kind !== 'complete') return null
  const { coverage, lastPage, totals } = end
  return {
    startedAt: Math.round(walk.startedAt * MINUTE_MS),
    endedAt: answer.at,
    lastPage,
    totals,
    isSteady: coverage === 'steady',
    isDrifted: coverage === 'drifted',
    written: walk.written,
    coverage,
  }
}
