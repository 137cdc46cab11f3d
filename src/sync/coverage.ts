import { JobError } from '../errors.ts'
import { counted, grouped } from '../text.ts'
import type { Account, Checkpoint, Coverage, Page, Sighting, Walk } from './types.ts'

/** A list this much longer than it was at first does not end; small lists may grow a good deal while they are read. */
const GROWTH = 2
const GROWTH_PAGES = 1000

/** So many pages in a row with nothing new on them, in a list that does not say how long it is, are a circle. */
const STALE_PAGES = 1000

const FRESH_ACCOUNT: Account = {
  counted: true,
  firstTotal: null,
  totalChanged: false,
  firstLastPage: null,
  paginated: true,
  passTotal: null,
  passMoved: false,
  passShort: false,
  passAnswers: 0,
  passDistinct: 0,
  passRepeated: 0,
  moved: false,
  stale: 0,
  steppedBack: false,
}

/** Where a walk begins. */
export function startCheckpoint(firstPage: number): Checkpoint {
  return { pass: 1, nextPage: firstPage, account: FRESH_ACCOUNT }
}

/** Where a walk goes on after a page: one answer, and what it means for the accounts. Throws on a list without end. */
export function advance(
  walk: Pick<Walk, 'firstPage'>,
  from: Checkpoint,
  page: Page,
  sighting: Sighting,
): Checkpoint {
  const askedAgain = from.nextPage !== null && page.number < from.nextPage
  const account = enter(from.account, page, sighting, askedAgain)
  const { pass } = from
  if (isBeyondEnd(page) && page.number > walk.firstPage) {
    const moved = { ...account, moved: true, passMoved: true, steppedBack: true }
    return { pass, nextPage: lastPageBack(walk, account, page), account: moved }
  }
  assertEnds(account, page)
  return { pass, nextPage: page.next, account }
}

/** The page to step back to, once a pass; null where nothing is left of what this walk reads. */
function lastPageBack(walk: Pick<Walk, 'firstPage'>, account: Account, page: Page): number | null {
  const isLeft = page.lastPage !== null && page.lastPage >= walk.firstPage
  return isLeft && !account.steppedBack ? page.lastPage : null
}

function enter(account: Account, page: Page, sighting: Sighting, askedAgain: boolean): Account {
  const first = account.passAnswers === 0
  const isRepeated = sighting.repeated > 0 || (askedAgain && sighting.newToPass > 0)
  return {
    ...account,
    counted: account.counted && (page.total !== null || !page.paginated),
    firstTotal: account.firstTotal ?? page.total,
    totalChanged: account.totalChanged || differs(page.total, account.firstTotal),
    passTotal: account.passTotal ?? page.total,
    passMoved: account.passMoved || isRepeated || differs(page.total, account.passTotal),
    passShort: page.next === null && page.items.length > 0 && (page.lastPage ?? 0) > page.number,
    firstLastPage: first ? page.lastPage : account.firstLastPage,
    paginated: page.paginated,
    passAnswers: account.passAnswers + 1,
    passDistinct: account.passDistinct + sighting.newToPass,
    passRepeated: account.passRepeated + sighting.repeated,
    moved: account.moved || isRepeated,
    stale: sighting.newToPass > 0 || askedAgain ? 0 : account.stale + 1,
  }
}

function differs(total: number | null, before: number | null): boolean {
  return total !== null && before !== null && total !== before
}

/** Laravel answers a page past the end with 200, no items and no next page: not an end, but a list that became shorter. */
function isBeyondEnd(page: Page): boolean {
  return (
    page.items.length === 0 && page.next === null && page.lastPage !== null && page.number > page.lastPage
  )
}

function assertEnds(account: Account, page: Page): void {
  if (page.next === null) return
  const { firstLastPage } = account
  if (firstLastPage !== null && page.number > firstLastPage * GROWTH + GROWTH_PAGES) {
    const was = counted(firstLastPage, 'page')
    throw new JobError(
      'BAD_RESPONSE',
      `the list does not end: it had ${was} at first, and page ${grouped(page.number)} names a next one`,
    )
  }
  if (account.stale >= STALE_PAGES) {
    throw new JobError(
      'BAD_RESPONSE',
      `the list does not end: the last ${counted(STALE_PAGES, 'page')} brought nothing new`,
    )
  }
}

export interface PassRules {
  maxPasses: number
  total: 'check' | 'ignore'
  kind: 'full' | 'partial'
}

export type Verdict =
  | { kind: 'complete'; coverage: Coverage | null }
  | { kind: 'again'; why: string }
  | { kind: 'incomplete'; why: string }

/**
 * What the end of a pass means. `distinct` counts the items of the whole walk. That the sums agree proves a reading only
 * where nothing moved meanwhile: an item that slid past the reader and one that came in its place cancel out. A first
 * pass in which nothing moved is steady; a later one has repaired what moved before it.
 */
export function judgePass(checkpoint: Checkpoint, distinct: number, rules: PassRules): Verdict {
  const { pass, account } = checkpoint
  const { passDistinct, passRepeated } = account
  if (rules.kind === 'partial') return { kind: 'complete', coverage: null }
  const settled: Verdict = { kind: 'complete', coverage: pass === 1 ? 'steady' : 'repaired' }
  const total = account.passTotal ?? 0
  const isShort = account.passShort && rules.total === 'check'
  // In one answer nothing can have moved; what stands there twice is counted twice by the total, too.
  if (!account.passShort && account.passAnswers === 1 && passDistinct + passRepeated >= total) return settled
  if (!isShort && (!account.counted || rules.total === 'ignore')) return { kind: 'complete', coverage: null }
  if (!account.passMoved && passDistinct === total) return settled
  const still = !account.totalChanged
  if (pass > 1 && still && distinct === total) return { kind: 'complete', coverage: 'repaired' }
  const why = movement(account)
  if (pass < rules.maxPasses) return { kind: 'again', why }
  if (still && !account.moved && (passDistinct < total || isShort)) return { kind: 'incomplete', why }
  return { kind: 'complete', coverage: 'drifted' }
}

/** The next pass over the same list: what was seen stays seen, the pass's own counts begin anew. */
export function nextPass(checkpoint: Checkpoint): Checkpoint {
  const { counted: wasCounted, firstTotal, totalChanged, moved } = checkpoint.account
  return {
    pass: checkpoint.pass + 1,
    nextPage: 1,
    account: { ...FRESH_ACCOUNT, counted: wasCounted, firstTotal, totalChanged, moved },
  }
}

function movement(account: Account): string {
  const total = account.passTotal === null ? '' : ` of a total of ${grouped(account.passTotal)}`
  const seen = `${counted(account.passDistinct, 'item')} came${total}`
  const repeats = account.passRepeated > 0 ? `, ${grouped(account.passRepeated)} of them twice` : ''
  const short = account.passShort ? ', and the last page says that there are more pages' : ''
  const change = account.totalChanged ? ', and the total changed meanwhile' : ''
  return `${seen}${repeats}${change}${short}`
}
