import type { PageMatch } from '../seen/match-page.ts'
import type { Checkpoint, Page } from '../types.ts'
import { isBeyondEnd } from './ends.ts'
import { askAgain, mayAskAgain, moving, readingAfter, riseSince } from './observe.ts'
import type { CoverageState, Overlap, Question, WalkRules } from './state.ts'

/** So often the place where the walk stood may turn out to be further on. */
const JUMPS = 3

/**
 * A walk that goes on after an interruption asks the last page that it read again, and then those around it, until one
 * holds an item that was known before: so it stands where it stood, however far the list slid meanwhile.
 */
export function resumeReading(rules: WalkRules, from: Checkpoint): Checkpoint {
  const { account, nextPage } = from
  const asks = from.ask?.why
  if (nextPage === null || account.edge === null || asks === 'overlap') return from
  // What goes back has begun before the interruption, and has to come to its own end first.
  if (asks === 'back' || asks === 'again')
    return { ...from, account: { ...account, overlap: overlapAt(account) } }
  const at = overlapAt(account)
  const overlapping = { ...account, lookBack: null, overlap: at && { ...at, isFree: true } }
  return askOverlap(rules, { ...from, account: overlapping }, account.edge.page)
}

/** The page past the end of a list that became shorter: what is left is met from its new last page. */
export function overlapFrom(rules: WalkRules, from: Checkpoint, page: Page): Checkpoint {
  const { account } = from
  const last = page.lastPage ?? 0
  const ended = { ...from, nextPage: null, ask: null, account: { ...account, overlap: null } }
  if (last < rules.firstPage) return ended
  return askOverlap(rules, { ...ended, account: { ...account, overlap: overlapAt(account) } }, last)
}

export function overlapAt({ edge }: CoverageState): Overlap | null {
  if (!edge) return null
  return {
    until: edge.place,
    index: edge.index,
    total: edge.total,
    top: null,
    rose: false,
    jumps: 0,
    isFree: false,
  }
}

/** Asks for a page of the overlap that is under way, once what else is asked has come to its end. */
export function askOverlap(rules: WalkRules, from: Checkpoint, page: number): Checkpoint {
  const { account } = from
  const { overlap } = account
  if (!overlap) return { ...from, nextPage: page, ask: null }
  if (page < rules.firstPage) return done(from)
  if (!overlap.isFree && !mayAskAgain(account))
    return done({ ...from, account: moving({ ...account, unsettled: true }) })
  const before = overlap.top && account.edge ? account.edge.place.segment : null
  const ask: Question = { why: 'overlap', page, until: overlap.until, before }
  return { ...from, ask }
}

/** An answer of the overlap. */
export function findPlace(rules: WalkRules, from: Checkpoint, page: Page, match: PageMatch): Checkpoint {
  const { overlap } = from.account
  if (!overlap) return { ...from, ask: null }
  if (isBeyondEnd(page)) return overlapFrom(rules, { ...from, account: moving(from.account) }, page)
  return overlap.top ? goDown(rules, from, overlap, page, match) : meet(rules, from, overlap, page, match)
}

function goDown(
  rules: WalkRules,
  from: Checkpoint,
  overlap: Overlap,
  page: Page,
  { known, places }: PageMatch,
): Checkpoint {
  const rose = overlap.rose || riseSince(overlap, page) > 0
  // What stood on the page where the walk was stands on an earlier one now.
  const slid = places.some((place) => place?.segment === overlap.until.segment)
  const { account } = from
  const crossed = account.crossed || slid
  const next = { ...from, account: { ...account, crossed, overlap: { ...overlap, rose, total: page.total } } }
  return known ? done(next) : askOverlap(rules, next, page.number - 1)
}

function meet(
  rules: WalkRules,
  from: Checkpoint,
  overlap: Overlap,
  page: Page,
  match: PageMatch,
): Checkpoint {
  const { account } = from
  const { known } = match
  if (!known) {
    const top = { page: page.number, next: page.next, total: page.total }
    const read = moving(readingAfter(account, page, match))
    const down = { ...overlap, top, total: page.total }
    return askOverlap(
      rules,
      { ...from, nextPage: page.next, account: { ...read, overlap: down } },
      page.number - 1,
    )
  }
  const perPage = account.perPage || match.entries.length
  const index = (page.number - 1) * perPage + known.entry + known.distance
  const place = Math.min(Math.floor(index / perPage) + 1, page.lastPage ?? Number.POSITIVE_INFINITY)
  if (known.distance > 0 && place > page.number && overlap.jumps < JUMPS)
    return askOverlap(
      rules,
      { ...from, account: { ...account, overlap: { ...overlap, jumps: overlap.jumps + 1 } } },
      place,
    )
  const shift = index - overlap.index
  const unpaid = account.unpaid + Math.max(0, shift - Math.max(0, riseSince(overlap, page)))
  const read = readingAfter({ ...account, unpaid, owed: 0, overlap: null }, page, match)
  const isMoved = shift !== 0 || match.newToPass > 0
  const repeated = account.passRepeated + Math.max(0, shift)
  const crossed = account.crossed || shift > 0 || account.edge?.page !== page.number
  const next = isMoved ? moving({ ...read, passRepeated: repeated, crossed }) : read
  return { ...from, nextPage: page.next, ask: null, account: next }
}

function done(from: Checkpoint): Checkpoint {
  const { overlap, ...account } = from.account
  const next = { ...from, ask: null, account: { ...account, overlap: null } }
  return overlap?.rose && overlap.top && mayAskAgain(account as CoverageState)
    ? askAgain(next, overlap.top.page)
    : next
}
