import type { Store, StoredShare } from '../store.ts'

/**
 * What refreshes of all lists with one budget pay. A page is read once the rows that have probably changed on it, times how long they have been
 * outdated, are worth the price of a request. The price rises with each request of refreshes and falls with time, so that refreshes use the
 * share, and no more. One row of the store, for all processes.
 */
export interface Share {
  /** The time of the other two, epoch milliseconds. */
  at: number
  /** Requests that were charged and that the share has not carried yet. */
  level: number
  /** The logarithm of the price of a request, in outdated rows times minutes. */
  logPrice: number
}

/** What a budget allows its refreshes. */
export interface ShareRules {
  /** Requests a minute. */
  perMinute: number
  /** Older pages that are read together. */
  chunk: number
}

/** The limit that is assumed if none is announced, learned or configured. Requests a minute. */
const USUAL_LIMIT = 60

const LEAST_CHUNK = 6

/**
 * A reading of a newest end may begin up to this level, in chunks. So an hour may also hold what was charged before it and a reading that has
 * begun: `shareRules` makes the share smaller by as much.
 */
const NEWEST_CHUNKS = 1.5

/**
 * How strictly the most urgent list comes first. Not absolutely: a list that is being walked can take its turn only between two
 * pages, and the others must not wait for it.
 */
const IN_TURN = 4

/** Minutes in which the price falls by the factor e while the share is unused, or rises by it while twice the share is used. */
const INERTIA = 60

// What these and the following constants achieve is in the tables of freshness in test/simulation/README.md: change one only after
// `npm run simulate -- --freshness`.

/** Low enough for a new mirror to find its busy lists in minutes: the price rises as soon as the share is used. */
const START_PRICE = 20
const LEAST_PRICE = 0.03

/** While something due has waited for LATE_MS, the price falls more slowly, by this part: a falling price would make still more due. */
export const LATE_MS = 1_200_000
const SLOWER = 0.2

export const MINUTE_MS = 60_000

/** @param percent The part of the limit that refreshes may use. */
export function shareRules(limit: number | null, percent: number): ShareRules {
  const share = ((limit ?? USUAL_LIMIT) * percent) / 100
  const chunk = Math.max(LEAST_CHUNK, share)
  const begun = (NEWEST_CHUNKS * chunk + END_COST) / 60
  return { perMinute: Math.max(share - begun, share / 2), chunk }
}

/** The share of a budget that no refresh has used yet. */
export function newShare(now: number): Share {
  return { at: now, level: 0, logPrice: Math.log(START_PRICE) }
}

/** The share now: since `at`, its level has drained and its price has fallen. `isLate`: something that is due has waited for LATE_MS. */
export function agedShare(
  { at, level, logPrice }: Share,
  rules: ShareRules,
  now: number,
  isLate = false,
): Share {
  const minutes = Math.max(0, now - at) / MINUTE_MS
  const fall = (minutes / INERTIA) * (isLate ? 1 - SLOWER : 1)
  return {
    at: now,
    level: Math.max(0, level - rules.perMinute * minutes),
    logPrice: Math.max(Math.log(LEAST_PRICE), logPrice - fall),
  }
}

/** The share after these requests were charged; a number below 0 takes back what was charged and not sent. */
export function charge({ at, level, logPrice }: Share, { perMinute }: ShareRules, requests: number): Share {
  return { at, level: level + requests, logPrice: logPrice + requests / (perMinute * INERTIA) }
}

export function priceOf({ logPrice }: Pick<Share, 'logPrice'>): number {
  return Math.exp(logPrice)
}

/** What a refresh asks the share for: a reading of the newest end, the first older page of a visit, a further one of it. */
export type RefreshRequest = 'newest' | 'visit' | 'older'

/**
 * Whether the share has room for this to begin.
 * @param part How urgent this newest end is, as a part of the most urgent one that is due.
 */
export function mayBegin(
  { level }: Share,
  { chunk }: ShareRules,
  request: RefreshRequest,
  part = 1,
): boolean {
  const newest = (1 + (NEWEST_CHUNKS - 1) * Math.min(1, part) ** IN_TURN) * chunk
  return level <= { newest, visit: 1, older: chunk }[request]
}

/** A missing row counts as this many outdated ones. */
export const MISSING = 16

/** Requests that a reading of an end takes even without new rows. */
export const END_COST = 2

/** A list of at most this many pages is walked instead of refreshed: that takes as many requests, and proves more. */
const SHORT_PAGES = 4

/** Whether a full walk takes the place of the refresh. */
export function isWalkedWhole({ lastPage }: { lastPage: number }): boolean {
  return lastPage <= SHORT_PAGES
}

/**
 * Within how many minutes new rows should show as long as the price allows it: for a list with about one new row an hour or more, and for
 * one with one in two hours or fewer. Above the price DEAR both grow.
 */
const BUSY_CAP = 28
const LONGEST_CAP = 60
const DEAR = 400

/** The part of a share with which all newest ends are read in turn. */
const TURNS_PART = 0.14

/**
 * Milliseconds in which that part of the share reads the newest end of each of these lists once. No list waits longer, even if it is quiet or
 * its news are not known yet: with few lists, `every` is kept from the first refresh on.
 */
export function turnOf(lists: number, { perMinute }: ShareRules): number {
  return (MINUTE_MS * lists * END_COST) / (TURNS_PART * perMinute)
}

/**
 * Milliseconds between two readings of a newest end.
 * @param news Rows that come and change there, in outdated ones a minute.
 * @param list `turn`: see `turnOf`.
 */
export function newestEvery(
  price: number,
  news: number,
  list: { every: number; turn: number; lastPage: number },
): number {
  const cost = isWalkedWhole(list) ? list.lastPage + 1 : END_COST
  const cap =
    Math.min(LONGEST_CAP, Math.max(BUSY_CAP, MISSING / news / 2)) * Math.max(1, Math.sqrt(price / DEAR))
  const worth = MINUTE_MS * Math.min(cap, Math.sqrt((2 * price * cost) / news))
  return Math.max(list.every, Math.min(list.turn, worth))
}

export const PER_PAGE = 25

/**
 * Minutes until a page is worth the price, if nothing else reads it. Infinite if its rows change so often that they are outdated
 * again at once: then reading it gains less than it costs.
 * @param rate Rows that change on it, a minute.
 */
export function period(rate: number, price: number): number {
  const worth = (price * rate) / PER_PAGE ** 2
  if (worth > 1 - 1e-9) return Number.POSITIVE_INFINITY
  if (worth < 1e-6) return Math.sqrt((2 * price) / rate)
  // Newton's steps towards 1 - (1 + x) exp(-x) = worth, each on the same side of it: the curve turns at 1.
  let x = Math.min(1, Math.sqrt(2 * worth) * (1 + Math.sqrt(worth)))
  for (let step = 1; Math.abs(step) > 1e-6; x += step)
    step = (worth - 1 + (1 + x) * Math.exp(-x)) / (x * Math.exp(-x))
  return (PER_PAGE * x) / rate
}

/**
 * Minutes between two readings of a page that full walks read, too.
 * @param walkEvery Minutes between two of these. @param every Minutes: no page is read more often.
 */
export function between(rate: number, price: number, walkEvery: number, every: number): number {
  let found = period(rate, price)
  // A reading gains at most what changes in a third of the time between two walks, squared.
  if (found > walkEvery / Math.sqrt(3)) return Number.POSITIVE_INFINITY
  for (let step = 0; step < 4; step++)
    found = period(rate, price / (1 - (2 * Math.min(found, walkEvery)) / (3 * walkEvery)))
  return Math.max(every, found)
}

/** The share of one budget, as this process uses it beside others. */
export type ShareUse = ReturnType<typeof createShareUse>

export function createShareUse(
  store: Pick<Store, 'shares' | 'writeShare'>,
  budgetKey: string,
  rules: () => ShareRules,
  now: () => number,
) {
  let last: StoredShare | null = null
  let waits = { isLate: false, mostUrgent: 0 }
  /** The share now, as far as this process knows: others may have charged it since. */
  const known = () => agedShare(last ?? newShare(now()), rules(), now(), waits.isLate)
  return {
    rules,
    known,
    /** Notes the stored share; null: no refresh has used this budget yet. */
    note(stored: StoredShare | null) {
      last = stored
    },
    /** `mostUrgent`: how urgent the most urgent newest end is that is due. */
    noteWaits(noted: typeof waits) {
      waits = noted
    },
    /** This urgency as a part of `mostUrgent`. */
    partOfMost: (urgency: number) => (waits.mostUrgent > 0 ? urgency / waits.mostUrgent : 1),
    /** Charges as many requests as `wanted` returns for the stored share, and returns them. A process that is killed leaves them charged. */
    async take(wanted: (share: Share) => number): Promise<number> {
      for (;;) {
        last = (await store.shares([budgetKey]))[0] ?? null
        const share = known()
        const requests = wanted(share)
        if (requests === 0) return 0
        const next = { ...charge(share, rules(), requests), budgetKey, version: (last?.version ?? 0) + 1 }
        if (!(await store.writeShare(next))) continue
        last = next
        return requests
      }
    },
  }
}
