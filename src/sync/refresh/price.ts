import type { Store, StoredShare } from '../store.ts'

/**
 * What refreshes of all lists with one budget pay: a page is read once the rows that have probably changed on it, times how long they
 * wait, are worth the price of a request. The price rises with each request of refreshes and falls with time, so that the share is used,
 * and no more. One row of the store, for all processes.
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

/** Where nothing announces a limit, none was learned and none is configured. Requests a minute. */
const USUAL_LIMIT = 60

const LEAST_CHUNK = 6

/** A newest end begins up to a level of so many chunks. An hour holds what was charged before it, and a reading that has begun, too: the share is less by as much. */
const NEWEST_CHUNKS = 1.5

/** How strictly that one comes first which has waited longest. A list that is walked asks between two pages only, so none waits for it alone. */
const IN_TURN = 4

/** Minutes in which an unused share lowers the price, and in which one used twice raises it, by the factor e. */
const INERTIA = 60

/** Low enough for a new mirror to find its busy lists in minutes: it rises as soon as the share is used. */
const START_PRICE = 20
const LEAST_PRICE = 0.03

/** While something waits for so long the price falls more slowly by this part. */
export const LATE_MS = 600_000
const SLOWER = 0.2

export const MINUTE = 60_000

/** @param percent Of the limit, for refreshes. */
export function shareRules(limit: number | null, percent: number): ShareRules {
  const share = ((limit ?? USUAL_LIMIT) * percent) / 100
  const chunk = Math.max(LEAST_CHUNK, share)
  return { perMinute: (share * 60) / (60 + (NEWEST_CHUNKS * chunk + END_COST) / share), chunk }
}

/** Of a budget that no refresh has used. */
export function newShare(now: number): Share {
  return { at: now, level: 0, logPrice: Math.log(START_PRICE) }
}

/** The share by now. `isLate`: something that is due has waited for more than LATE_MS. */
export function pass({ at, level, logPrice }: Share, rules: ShareRules, now: number, isLate = false): Share {
  const minutes = Math.max(0, now - at) / MINUTE
  const fall = (minutes / INERTIA) * (isLate ? 1 - SLOWER : 1)
  return {
    at: now,
    level: Math.max(0, level - rules.perMinute * minutes),
    logPrice: Math.max(Math.log(LEAST_PRICE), logPrice - fall),
  }
}

/** The share after so many requests; fewer than none, where fewer were sent than were charged. */
export function charge({ at, level, logPrice }: Share, { perMinute }: ShareRules, requests: number): Share {
  return { at, level: level + requests, logPrice: logPrice + requests / (perMinute * INERTIA) }
}

export function priceOf({ logPrice }: Pick<Share, 'logPrice'>): number {
  return Math.exp(logPrice)
}

/** What may be read: the newest end of a list, the first older page of a visit, another one of it. */
export type Reading = 'newest' | 'visit' | 'older'

/**
 * Whether the share has room for a reading to begin.
 * @param part Of the longest wait of a newest end, in its own intervals: where more of them are due than the share carries, none is
 * left out because others ask more often.
 */
export function mayBegin({ level }: Share, { chunk }: ShareRules, reading: Reading, part = 1): boolean {
  const newest = (1 + (NEWEST_CHUNKS - 1) * Math.min(1, part) ** IN_TURN) * chunk
  return level <= { newest, visit: 0, older: chunk }[reading]
}

/** A missing row counts as so many outdated ones. */
export const MISSING = 16

/** Requests for an end that do not grow with its new rows. */
export const END_COST = 2

/** A list of at most so many pages is walked whole: that takes as many requests, and claims more. */
const SHORT_PAGES = 4

/** Whether a full walk takes the place of the refresh. */
export function isWalkedWhole({ lastPage }: { lastPage: number }): boolean {
  return lastPage <= SHORT_PAGES
}

/** New rows should show within this, as long as the price allows it: of a list with two rows an hour, and of any other. Minutes. */
const BUSY_CAP = 28
const LONGEST_CAP = 60
const DEAR = 400

/** The part of a share that is enough for the turns of all newest ends. */
const TURNS_PART = 0.14

/**
 * Milliseconds in which a part of the share reads the newest ends of so many lists once. A quiet list, and one whose news are not known
 * yet, waits no longer: where there are few lists, `every` is kept from the first refresh on.
 */
export function turnOf(lists: number, { perMinute }: ShareRules): number {
  return (MINUTE * lists * END_COST) / (TURNS_PART * perMinute)
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
  const worth = MINUTE * Math.min(cap, Math.sqrt((2 * price * cost) / news))
  return Math.max(list.every, Math.min(list.turn, worth))
}

export const PER_PAGE = 25

/**
 * Minutes until a page is worth the price, if nothing else reads it. Infinite where its rows change so often that they are outdated
 * again at once: reading it gains less than it costs.
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
  scope: string,
  rules: () => ShareRules,
  now: () => number,
) {
  let last: StoredShare | null = null
  let waits = { isLate: false, longest: 0 }
  /** By now, as far as this process knows: others may have charged it since. */
  const known = () => pass(last ?? newShare(now()), rules(), now(), waits.isLate)
  return {
    rules,
    known,
    /** Takes what was read of it; null: no refresh has used it yet. */
    note(stored: StoredShare | null) {
      last = stored
    },
    /** `longest`: the longest wait of a newest end for its time, in its own intervals; below 0: none is due. */
    noteWaits(noted: typeof waits) {
      waits = noted
    },
    /** This wait as a part of the longest one that was noted. */
    partOfLongest: (times: number) => (waits.longest > 0 ? Math.max(0, times) / waits.longest : 1),
    /** Charges as many requests as `wanted` returns for the share as it stands now, and returns them. Who is killed leaves them charged. */
    async take(wanted: (share: Share) => number): Promise<number> {
      for (;;) {
        last = (await store.shares([scope]))[0] ?? null
        const share = known()
        const requests = wanted(share)
        if (requests === 0) return 0
        const next = { ...charge(share, rules(), requests), scope, version: (last?.version ?? 0) + 1 }
        if (!(await store.writeShare(next))) continue
        last = next
        return requests
      }
    },
  }
}
