import type { PageMatch } from '../seen/match-page.ts'
import type { Checkpoint, Page } from '../types.ts'
import { assertEnds, isBeyondEnd } from './ends.ts'
import { counting, moving, readingAfter, riseSince, unsettled } from './observe.ts'
import { overlapFrom } from './overlap.ts'
import type { CoverageState, ListPosition, WalkRules } from './state.ts'
import { stepBack } from './step-back.ts'
import { isSwinging } from './totals.ts'

/**
 * An answer that reads on. What came again is counted against the rise of the total: an item that was added behind the
 * reader pushes one that is known over the boundary. A fall without anything that came again may have pulled an unread
 * item over it the other way, and is followed back.
 */
export function readOn(rules: WalkRules, from: Checkpoint, page: Page, match: PageMatch): Checkpoint {
  const { account } = from
  const stale = match.newToPass > 0 ? 0 : account.stale + 1
  if (isBeyondEnd(page) && page.number > rules.firstPage)
    return overlapFrom(rules, { ...from, account: moving({ ...account, stale }) }, page)
  assertEnds(rules, { ...account, stale }, page)
  const { near, far } = repeatsOn(account, match)
  const rise = account.edge && rules.total === 'check' ? riseSince(account.edge, page) : 0
  const paid = payFor(readingAfter({ ...account, stale }, page, match), near, rise, stale > 0)
  const next = countRepeats(paid, near, far, page.items.length - match.entries.length)
  const isFall = near === 0 && rise < 0
  const counted = near === 0 && rise !== 0 ? counting(next, isFall ? 'falls' : 'rises') : next
  const read = { ...from, nextPage: page.next, ask: null, account: counted }
  if (!isFall) return read
  return isSwinging(counted) ? unsettled(read) : stepBack(rules, read, page)
}

/** Known keys at or before the edge; those beyond it were found when asked for something else, and are read only now. */
function repeatsOn({ edge, recent }: CoverageState, { places }: PageMatch): { near: number; far: number } {
  const oldest = recent[0] ?? 0
  let near = 0
  let far = 0
  for (const place of places) {
    if (!edge || !place || isBehind(place, edge.place)) continue
    if (place.segment >= oldest) near++
    else far++
  }
  return { near, far }
}

/** An item that stands on one page twice has come twice, and no movement will explain it. */
function countRepeats(account: CoverageState, near: number, far: number, twice: number): CoverageState {
  const { wanderers, unpaid, passRepeated } = account
  const next = {
    ...account,
    crossed: account.crossed || near + far > 0,
    wanderers: wanderers + far,
    unpaid: unpaid + twice,
    passRepeated: passRepeated + near + far + twice,
  }
  return near + far + twice > 0 ? moving(next) : next
}

function isBehind(place: ListPosition, edge: ListPosition): boolean {
  return place.segment > edge.segment || (place.segment === edge.segment && place.position > edge.position)
}

/**
 * The server counts before it reads, so that a rise may show one answer later than what it pushed. And what is pushed may
 * be more than a page: what of a rise is left on an answer that brings nothing new, below 0 here, pays on the next one.
 */
function payFor(account: CoverageState, near: number, rise: number, isAllKnown: boolean): CoverageState {
  const { owed } = account
  const late = Math.min(Math.max(owed, 0), Math.max(0, rise - near))
  const left = near - Math.max(0, rise) + Math.min(owed, 0) + late
  const pushes = (left > 0 ? 1 : 0) - (late > 0 ? 1 : 0)
  return {
    ...counting(account, 'pushes', pushes),
    unpaid: account.unpaid - late + Math.max(0, left),
    owed: isAllKnown ? left : Math.max(0, left),
  }
}
