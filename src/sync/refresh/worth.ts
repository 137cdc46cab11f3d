import { isAhead } from '../../clock.ts'
import type { End } from './ends.ts'
import type { RefreshState } from './state.ts'

// Rows that change at a rate r and wait for T minutes have been wrong for r T T / 2 row-minutes, and one request ends that. So what
// has probably been wrong for the most row-minutes is read next, over all lists of a budget, whenever the share has room.
// What the constants achieve is in the table of `npm run simulate -- --freshness`: change one only after that.

/** A list, and how often its rows come and change. */
export type Freshness = Pick<RefreshState, 'lastPage' | 'shown' | 'news' | 'newestAt' | 'newest' | 'bands'>

/** A list as it is compared with the others of its budget. */
export interface SharingList extends Freshness {
  /** Milliseconds: the newest end is read no more often. */
  every: number
  /** Whether a full walk of it is under way: between two pages a refresh that is due goes first. */
  isWalked?: boolean
  /** Whether it cannot be read now, and only its part of the share counts. */
  isTaken?: boolean
}

/** What to read of a list; `band` null: its newest end. */
export interface Reading {
  worth: number
  band: number | null
  depth: number
}

/** The newest end, whatever it is worth. */
export const NEWEST: Reading = { worth: 0, band: null, depth: 1 }

const MINUTE_MS = 60_000

/** A missing row counts as so many outdated ones. */
const MISSING = 16
/** Each found row replaces a twentieth of what was known: of the news of an end, an eighth of one in so many new rows. */
const MEMORY = 20
const NEWS_MEMORY = (MEMORY * MISSING) / 2
/** What is known of an end with little news weighs no more than this: a list that becomes busy must not take turns with quiet ones for hours. */
const QUIET_MINUTES = 60
/** Before anything is known, all rows of a list are assumed to be replaced within this many minutes. */
const USUAL_LIFE = 144_000
/** Even a quiet end counts as so many rows a minute, so that its new rows show within the hour where there is room. */
const LEAST_NEWS = 1
/** A full walk is assumed to read each page within this many minutes, too. */
const WALK_MINUTES = 1440
/** Requests that a reading of an end takes even without new rows. */
const END_COST = 2
/** A list of at most this many pages is walked instead of refreshed: that takes as many requests, and proves more. */
const SHORT_PAGES = 4
/** The limit that is assumed where none is known. Requests a minute. */
const USUAL_LIMIT = 60
/** Older pages of one list are read together, so many or as many as the share carries in a minute; a newest end may begin ahead of the share by 1.5 times that. */
const LEAST_CHUNK = 6
const NEWEST_CHUNKS = 1.5
/** Newest ends that take at most this part of the share go before older pages; that of a list which is walked goes before all. */
const ENDS_PART = 0.5
const FIRST = 1e15

/** Whether a full walk takes the place of the refresh. */
export function isWalkedWhole({ lastPage }: { lastPage: number }): boolean {
  return lastPage <= SHORT_PAGES
}

/** Requests a minute that refreshes may send. @param percent The part of the limit that is theirs. */
export function shareOf(limit: number | null, percent: number): number {
  return ((limit ?? USUAL_LIMIT) * percent) / 100
}

/** Requests that refreshes have sent and their share has not carried yet. @param share What they were at a time. */
export function levelAt(share: { at: number; level: number }, perMinute: number, now: number): number {
  // That of a clock that was ahead would else stay until this one has come so far.
  if (isAhead(share.at, now)) return 0
  return Math.max(0, share.level - perMinute * minutesSince(share.at, now))
}

/** Before anything was read. */
export function newFreshness(total: number, lastPage: number, now: number): Freshness {
  const news = (MISSING * Math.max(1, total)) / USUAL_LIFE
  return { lastPage, shown: 0, news, newestAt: now, newest: null, bands: [] }
}

/** The rate after so many rows were found in so many minutes. It forgets by what is found, not by time, so that a few rows change little. */
export function learn(rate: number, found: number, minutes: number, memory = MEMORY): number {
  return (memory + found) / (memory / rate + minutes)
}

/** What is known once the newest end was read from `startedAt` on. */
export function afterNewest<F extends Freshness>(
  known: F,
  { added, changed }: { added: number; changed: number },
  startedAt: number,
): F {
  // From the least on: what was assumed of a quiet end must not weigh more than what is found there.
  const before = Math.max(LEAST_NEWS, known.news)
  const memory = Math.min(NEWS_MEMORY, QUIET_MINUTES * before)
  const news = learn(before, MISSING * added + changed, minutesSince(known.newestAt, startedAt), memory)
  return { ...known, newestAt: startedAt, news }
}

/** Gives each page of the list as it is now a band; if its newest end is another one now, what was learned of bands is forgotten. */
export function withBands<F extends Freshness>(known: F, newest: End | null, now: number): F {
  const { lastPage, news } = known
  const count = newest ? Math.floor(Math.log2(Math.max(1, lastPage))) : 1
  const bands = known.newest === newest ? known.bands.slice(0, count) : []
  const deepest = bands.at(-1)
  for (let [band, rate] = [bands.length, deepest?.rate ?? 0]; band < count; band++) {
    const { from, to } = spanOf(band, lastPage, newest)
    const usual = (news / MISSING) * (newest ? 0.25 / Math.sqrt(from * to) : 4 / to)
    rate = deepest ? rate / 2 : usual
    bands.push({ rate, at: now, read: 0 })
  }
  return { ...known, newest, bands }
}

/** The first and the last page of a band. */
function spanOf(band: number, lastPage: number, newest: End | null): { from: number; to: number } {
  return newest
    ? { from: 2 ** (band + 1), to: Math.min(lastPage, 2 ** (band + 2) - 1) }
    : { from: 1, to: Math.max(1, lastPage) }
}

/** The number of an older page. */
export function pageOf({ newest, lastPage }: Freshness, { depth }: Pick<Reading, 'depth'>): number {
  return newest === 'last' ? Math.max(1, lastPage - depth + 1) : depth
}

/** What is known once an older page was read. `found`: rows that were added or changed there; null: it could not be read. */
export function afterOlder<F extends Freshness>(
  known: F,
  { band, depth }: Pick<Reading, 'band' | 'depth'>,
  found: number | null,
  now: number,
): F {
  const bands = known.bands.map((one, index) => {
    if (index !== band) return one
    const { from, to } = spanOf(index, known.lastPage, known.newest)
    const rate = found === null ? one.rate : learn(one.rate, found, minutesSince(one.at, now))
    // The next page was read a page's part of a round later.
    return { rate, at: one.at + Math.max(0, now - one.at) / (to - from + 1), read: to - depth + 1 }
  })
  return { ...known, bands }
}

/** Requests that a reading of the newest end takes at least. */
function endCost({ lastPage }: SharingList): number {
  return isWalkedWhole({ lastPage }) ? lastPage + 1 : END_COST
}

/**
 * What is read next of the lists of a budget: what is worth most. Null: nothing is due, or it has to wait until the share has room.
 * Newest ends that the share carries `every` so often go first; else they compete with older pages.
 * @param visited Older pages of a list that were read together, if these are to go on: a newest end that is worth more ends that.
 */
export function nextReading<L extends SharingList>(
  lists: readonly L[],
  level: number,
  perMinute: number,
  now: number,
  visited = 0,
): { list: L; reading: Reading } | null {
  const chunk = Math.max(LEAST_CHUNK, perMinute)
  const ends = lists.map((list) => (endCost(list) * MINUTE_MS) / Math.max(1, list.every))
  const goesFirst = visited > 0 || ends.reduce((sum, one) => sum + one, 0) <= ENDS_PART * perMinute
  let best: { list: L; reading: Reading } | null = null
  for (const list of lists) {
    const reading = list.isTaken ? null : bestOf(list, goesFirst, now)
    if (reading && reading.worth > (best?.reading.worth ?? 0)) best = { list, reading }
  }
  if (visited > 0) {
    // All its pages at most: those that were read just now have hardly changed.
    const most = Math.min(chunk, best?.list.lastPage ?? 0)
    return best?.reading.band === null || visited >= most || level > chunk ? null : best
  }
  const room = best?.reading.band === null ? NEWEST_CHUNKS * chunk : 0
  return level <= room ? best : null
}

/** The reading of a list that is worth most. @param goesFirst Whether a newest end that is due goes before older pages. */
function bestOf(list: SharingList, goesFirst: boolean, now: number): Reading {
  const { news, newestAt, every, isWalked, bands } = list
  // A reading by a clock that was ahead is none.
  const waited = isAhead(newestAt, now) ? every : now - newestAt
  const first = isWalked ? 2 * FIRST : goesFirst ? FIRST : 0
  const worth = (Math.max(LEAST_NEWS, news) * (waited / MINUTE_MS) ** 2) / endCost(list) + first
  let best = { ...NEWEST, worth: waited < every ? 0 : worth }
  if (isWalkedWhole(list)) return best
  for (const band of bands.keys()) {
    const older = olderOf(list, band, now)
    if (older && older.worth > best.worth) best = older
  }
  return best
}

/** The next page of a band. Null where the newest end shows all of it: what is new there must be found as news. */
function olderOf(list: SharingList, band: number, now: number): Reading | null {
  const { rate, at, read } = list.bands[band] ?? { rate: 0, at: now, read: 0 }
  const { from, to } = spanOf(band, list.lastPage, list.newest)
  if (to <= list.shown) return null
  const depth = to - read < Math.max(from, list.shown + 1) ? to : to - read
  const minutes = Math.min(minutesSince(at, now), WALK_MINUTES)
  // The later in the round of walks, the less a reading before the next one gains.
  return { worth: rate * minutes ** 2 * (1 - (2 * minutes) / (3 * WALK_MINUTES)), band, depth }
}

function minutesSince(at: number, now: number): number {
  return Math.max(0, now - at) / MINUTE_MS
}
