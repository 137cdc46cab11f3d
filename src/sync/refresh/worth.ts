import { isAhead } from '../../clock.ts'

// Rows that change at a rate r and wait for T minutes have been wrong for r T T / 2 row-minutes, and one request ends that. So what
// has probably been wrong for the most row-minutes is read next, over all lists of a budget, whenever the share has room.
// What the constants achieve is in the table of freshness in test/simulation/README.md: change one only after `npm run simulate -- --freshness`.

/** What is known of how often the rows of a list come and change. */
export interface Freshness {
  /** Rows that come and change at the newest end, a minute; a new one counts MISSING times. */
  news: number
  /** When the reading of the newest end began last, epoch milliseconds. */
  newestAt: number
  /** Whether the newest end is known, from which pages are counted; if not, all pages are one band. */
  hasEnd: boolean
  /** Older pages by depth: 2-3, 4-7, 8-15, ... */
  bands: readonly Band[]
}

/** Pages of a list that are read equally often. */
interface Band {
  /** Rows that come and change on a page, a minute. */
  rate: number
  /** About when the page was read that is next in it, epoch milliseconds. */
  at: number
  /** Pages that were read in this round, from old to new: rows drift to older pages, and a reader that moved the same way would miss them. */
  read: number
}

/** A list as it is compared with the others of its budget. */
export interface SharingList {
  freshness: Freshness
  lastPage: number
  /** Pages that a reading of the newest end shows. */
  shown: number
  /** The newest end is read no more often. Milliseconds. */
  every: number
  /** Between two full walks by the schedule. Milliseconds. */
  walkEvery: number
  /** Whether a full walk of it is under way: between two pages a refresh that is due goes first. */
  isWalked?: boolean
  /** Whether it cannot be read now, and only its part of the share counts. */
  isTaken?: boolean
}

/** What to read of a list; `band` null: its newest end. `cost`: requests that this takes at least. */
export interface Reading {
  worth: number
  band: number | null
  depth: number
  cost: number
}

/** Of one budget: requests that refreshes have sent and the share has not carried yet. */
export interface Share {
  /** The time of `level`, epoch milliseconds. */
  at: number
  level: number
}

/** What a budget allows its refreshes. */
export interface ShareRules {
  /** Requests a minute. */
  perMinute: number
  /** Older pages that are read together, of one list. */
  chunk: number
}

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

/** Requests that a reading of an end takes even without new rows. */
const END_COST = 2

/** A list of at most this many pages is walked instead of refreshed: that takes as many requests, and proves more. */
const SHORT_PAGES = 4

/** The limit that is assumed where none is known. Requests a minute. */
const USUAL_LIMIT = 60

const LEAST_CHUNK = 6

/** Up to this level, in chunks, a reading of a newest end may begin. */
const NEWEST_CHUNKS = 1.5

/** Newest ends that take at most this part of the share go before older pages; that of a list which is walked goes before all. */
const ENDS_PART = 0.5
const FIRST = 1e15

/** Whether a full walk takes the place of the refresh. */
export function isWalkedWhole({ lastPage }: { lastPage: number }): boolean {
  return lastPage <= SHORT_PAGES
}

/** @param percent The part of the limit that refreshes may use. */
export function shareRules(limit: number | null, percent: number): ShareRules {
  const perMinute = ((limit ?? USUAL_LIMIT) * percent) / 100
  return { perMinute, chunk: Math.max(LEAST_CHUNK, perMinute) }
}

export function agedShare({ at, level }: Share, { perMinute }: ShareRules, now: number): Share {
  return { at: now, level: Math.max(0, level - perMinute * minutesSince(at, now)) }
}

/** Before anything was read. */
export function newFreshness(total: number, now: number): Freshness {
  return { news: (MISSING * Math.max(1, total)) / USUAL_LIFE, newestAt: now, hasEnd: false, bands: [] }
}

/** The rate after so many rows were found in so many minutes. It forgets by what is found, not by time, so that a few rows change little. */
export function learn(rate: number, found: number, minutes: number, memory = MEMORY): number {
  return (memory + found) / (memory / rate + minutes)
}

/** What is known once the newest end was read from `startedAt` on. */
export function afterNewest(
  known: Freshness,
  { added, changed }: { added: number; changed: number },
  startedAt: number,
): Freshness {
  const minutes = minutesSince(known.newestAt, startedAt)
  // From the least on: what was assumed of a quiet end must not weigh more than what is found there.
  const before = Math.max(LEAST_NEWS, known.news)
  const memory = Math.min(NEWS_MEMORY, QUIET_MINUTES * before)
  const news = learn(before, MISSING * added + changed, minutes, memory)
  return { ...known, newestAt: startedAt, news }
}

/** Gives each page of the list as it is now a band; if its newest end has become known, what was learned of bands is forgotten. */
export function withBands(known: Freshness, pages: number, hasEnd: boolean, now: number): Freshness {
  const count = hasEnd ? Math.floor(Math.log2(Math.max(1, pages))) : 1
  const bands = known.hasEnd === hasEnd ? known.bands.slice(0, count) : []
  const isEmpty = bands.length === 0
  while (bands.length < count) {
    const { from, to } = spanOf(bands.length, pages, hasEnd)
    const usual = (known.news / MISSING) * (hasEnd ? 0.25 / Math.sqrt(from * to) : 4 / Math.max(1, pages))
    const deepest = bands.at(-1)
    bands.push({ rate: isEmpty || !deepest ? usual : deepest.rate / 2, at: now, read: 0 })
  }
  return { ...known, hasEnd, bands }
}

/** The first and the last page of a band. */
function spanOf(band: number, pages: number, hasEnd: boolean): { from: number; to: number } {
  return hasEnd
    ? { from: 2 ** (band + 1), to: Math.min(pages, 2 ** (band + 2) - 1) }
    : { from: 1, to: Math.max(1, pages) }
}

/** What is known once an older page was read. `found`: rows that were added or changed there; null: it could not be read. */
export function afterOlder(
  known: Freshness,
  { band, depth }: Pick<Reading, 'band' | 'depth'>,
  found: number | null,
  pages: number,
  now: number,
): Freshness {
  const bands = known.bands.map((one, index) => {
    if (index !== band) return one
    const { from, to } = spanOf(index, pages, known.hasEnd)
    const rate = found === null ? one.rate : learn(one.rate, found, minutesSince(one.at, now))
    // The next page was read a page's part of a round later.
    return { rate, at: one.at + Math.max(0, now - one.at) / (to - from + 1), read: to - depth + 1 }
  })
  return { ...known, bands }
}

/** Requests that a reading of the newest end takes at least; of a short list, all of its pages. */
export function costOfNewest({ lastPage }: { lastPage: number }): number {
  return isWalkedWhole({ lastPage }) ? lastPage + 1 : END_COST
}

/**
 * What is read next of the lists of a budget: what is worth most. Null: nothing is due, or it has to wait until the share has room.
 * Newest ends that the share carries `every` so often go first; else they compete with older pages.
 */
export function nextReading<L extends SharingList>(
  lists: readonly L[],
  { level }: Share,
  { perMinute, chunk }: ShareRules,
  now: number,
): { list: L; reading: Reading } | null {
  const ends = lists.reduce(
    (sum, list) => sum + (costOfNewest(list) * MINUTE_MS) / Math.max(1, list.every),
    0,
  )
  let best: { list: L; reading: Reading } | null = null
  for (const list of lists) {
    if (list.isTaken) continue
    const reading = bestOf(list, ends <= ENDS_PART * perMinute, now)
    if (reading.worth > (best?.reading.worth ?? 0)) best = { list, reading }
  }
  const room = best?.reading.band === null ? NEWEST_CHUNKS * chunk : 0
  return level <= room ? best : null
}

/** The next older page of a visit that has read so many pages of the list. Null: it is over. */
export function nextOfVisit(
  list: SharingList,
  { level }: Share,
  { chunk }: ShareRules,
  pages: number,
  now: number,
): Reading | null {
  if (pages >= chunk || level > chunk) return null
  const reading = bestOf(list, true, now)
  return reading.band === null ? null : reading
}

/** The reading of a list that is worth most. @param goesFirst Whether a newest end that is due goes before older pages. */
function bestOf(list: SharingList, goesFirst: boolean, now: number): Reading {
  const { freshness, every } = list
  const cost = costOfNewest(list)
  // A reading by a clock that was ahead is none.
  const waited = isAhead(freshness.newestAt, now) ? every : now - freshness.newestAt
  const news = (Math.max(LEAST_NEWS, freshness.news) * (waited / MINUTE_MS) ** 2) / cost
  const first = list.isWalked ? 2 * FIRST : goesFirst ? FIRST : 0
  let best: Reading = { worth: waited < every ? 0 : news + first, band: null, depth: 1, cost }
  if (isWalkedWhole(list)) return best
  for (const band of freshness.bands.keys()) {
    const older = olderOf(list, band, now)
    if (older && older.worth > best.worth) best = older
  }
  return best
}

/** The next page of a band. Null where the newest end shows all of it: what is new there must be found as news. */
function olderOf(
  { freshness, lastPage, shown, walkEvery }: SharingList,
  band: number,
  now: number,
): Reading | null {
  const { rate, at, read } = freshness.bands[band] ?? { rate: 0, at: now, read: 0 }
  const { from, to } = spanOf(band, lastPage, freshness.hasEnd)
  if (to <= shown) return null
  const depth = to - read < Math.max(from, shown + 1) ? to : to - read
  // A walk reads the page, too: the later in its round, the less a reading before it gains.
  const most = Math.max(1, walkEvery / MINUTE_MS)
  const minutes = Math.min(minutesSince(at, now), most)
  return { worth: rate * minutes ** 2 * (1 - (2 * minutes) / (3 * most)), band, depth, cost: 1 }
}

function minutesSince(at: number, now: number): number {
  return Math.max(0, now - at) / MINUTE_MS
}
