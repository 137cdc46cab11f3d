import type { Place, Question } from '../sync/coverage/account.ts'
import type { Page, Sighting } from '../sync/types.ts'
import type { SeenItems } from './seen-items.ts'

/** What an answer adds to the ledger of its walk. */
export interface LedgerLine {
  ordinal: number
  pass: number
  page: number
  total: number | null
  why: Question['why']
  marks: readonly string[]
  /** Where each of them stands from now on, and which of them stood elsewhere or nowhere before. */
  placed: readonly Place[]
  isPlaced: readonly boolean[]
  newToWalk: number
}

export function ledgerLine(
  page: Page,
  { ordinal, pass, why, entries, newToWalk, places, placed }: Sighting,
): LedgerLine {
  return {
    ordinal,
    pass,
    page: page.number,
    total: page.total,
    why,
    marks: entries.map(({ mark }) => mark),
    placed,
    // Where something was looked for, what was known stays where it stands.
    isPlaced: places.map((place) => why === 'forward' || place === null),
    newToWalk,
  }
}

/** Notes where the items of an answer stand, for as long as their walk is open. */
export function noteSeen(
  seen: SeenItems,
  walkId: number,
  { ordinal, pass, why, marks, placed, isPlaced }: LedgerLine,
): void {
  if (why === 'forward') {
    seen.addSegment(walkId, pass, ordinal, marks)
    return
  }
  marks.forEach((mark, entry) => {
    const place = placed[entry]
    if (place && isPlaced[entry]) seen.add(walkId, mark, { pass, ...place })
  })
}
