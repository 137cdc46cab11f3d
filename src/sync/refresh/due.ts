import { type End, newestEnd } from './ends.ts'
import {
  END_COST,
  isWalkedWhole,
  LATE_MS,
  MINUTE_MS,
  MISSING,
  mayBegin,
  newestEvery,
  PER_PAGE,
  priceOf,
  type Share,
  type ShareUse,
} from './price.ts'
import { afterPage, nextOlder, notOwed, owe, periodsOf, visitAt } from './rates.ts'
import { knownRates, type RefreshState } from './state.ts'

/** What the configuration says of a list. Milliseconds. */
export interface RefreshPace {
  /** Its newest end is read no more often. */
  every: number
  /** Milliseconds in which the newest end of each list of the budget is read once: see `turnOf`. */
  turn: number
  /** Milliseconds between two full walks by the schedule. */
  walkEvery: number
  newest: End | 'auto'
}

/** How often a job is refreshed, and what that may cost. */
export interface RefreshPolicy extends RefreshPace {
  /** Of its budget. */
  share: ShareUse
}

/** Milliseconds between two readings of the newest end. */
export function newestInterval(
  state: RefreshState,
  { every, turn, newest }: RefreshPace,
  price: number,
): number {
  const { lastPage } = state
  return newestEvery(price, knownRates(state, newest, state.startedAt).news, { every, turn, lastPage })
}

/** When the newest end is read next, in epoch milliseconds. Missed times are not made up for, and a clock that was set back delays it by one interval at most. */
function newestDueAt(state: RefreshState, pace: RefreshPace, price: number, now: number): number {
  const interval = newestInterval(state, pace, price)
  const last = Math.max(state.startedAt, state.triedAt)
  return last > now + interval ? now : last + interval
}

/**
 * Rows that have probably come or changed at the newest end since it was read; each new one counts MISSING times. Each minute that they wait,
 * they are wrong for a minute more, so of the ends that are due the one with most rows goes first.
 */
function rowsWaiting(state: RefreshState, newest: End | 'auto', now: number): number {
  return (knownRates(state, newest, now).news * Math.max(0, now - state.startedAt)) / MINUTE_MS
}

/** A list that was not read for so many turns (see `turnOf`) was left out: it goes before all others. */
const MOST_TURNS = 2

/** More than the rows that can wait at any end. */
const LEFT_OUT = 1e9

/** Of the ends that are due the one with the greatest urgency is read first: by the rows that wait there, unless a list was left out. */
function urgencyOf(state: RefreshState, { newest, every, turn }: RefreshPace, now: number): number {
  const turns = (now - state.startedAt) / Math.max(every, turn)
  return turns > MOST_TURNS ? LEFT_OUT * turns : rowsWaiting(state, newest, now)
}

/** Requests that a reading of the newest end will probably take. */
export function expectedRequests(state: RefreshState, newest: End | 'auto', now: number): number {
  if (isWalkedWhole(state)) return state.lastPage + 1
  const added = rowsWaiting(state, newest, now) / MISSING
  return END_COST + Math.floor(added / PER_PAGE)
}

/** Requests to charge for a reading of the newest end now; 0: it is not due, or the share has no room. */
export function newestWanted(share: Share, state: RefreshState, policy: RefreshPolicy, now: number): number {
  if (newestDueAt(state, policy, priceOf(share), now) > now) return 0
  const part = policy.share.partOfMost(urgencyOf(state, policy, now))
  if (!mayBegin(share, policy.share.rules(), 'newest', part)) return 0
  return expectedRequests(state, policy.newest, now)
}

/** 1 if an older page is owed by now and the share has room, else 0. `goesOn`: a visit is under way. */
export function olderWanted(
  share: Share,
  state: RefreshState,
  policy: RefreshPolicy,
  now: number,
  goesOn: boolean,
): number {
  const rules = policy.share.rules()
  const isOwed = owedSince(state, policy) !== null
  if (!mayBegin(share, rules, isOwed && goesOn ? 'older' : 'visit')) return 0
  return isOwed || owedAt(state, policy, priceOf(share), rules.chunk) <= now ? 1 : 0
}

function planOf(state: RefreshState, pace: RefreshPace, price: number, now: number) {
  const rates = knownRates(state, pace.newest, now)
  const walkEvery = Math.max(pace.walkEvery, state.walkTook)
  return { rates, walkEvery, periods: periodsOf(rates, price, { every: pace.every, walkEvery }) }
}

/** Since when older pages are owed, epoch milliseconds; null: none are. */
function owedSince(state: RefreshState, { newest }: RefreshPace): number | null {
  if (isWalkedWhole(state) || !state.rates) return null
  const rates = knownRates(state, newest, state.startedAt)
  return nextOlder(rates) ? rates.bandsAt : null
}

/** When older pages are owed next, if none are now. Epoch milliseconds. */
function owedAt(state: RefreshState, pace: RefreshPace, price: number, chunk: number): number {
  if (isWalkedWhole(state)) return Number.POSITIVE_INFINITY
  const { rates, periods } = planOf(state, pace, price, state.startedAt)
  return visitAt(rates, periods, chunk)
}

/** An older page to read, and the state once it is read; null: it could not be. */
export interface OwedPage {
  number: number
  after(written: { added: number; changed: number } | null): RefreshState
}

/**
 * The next older page that is owed by now; null if none is. Pages that a reading of the newest end has just shown are no longer owed: the
 * returned state leaves them out.
 */
export function takeOwed(
  before: RefreshState,
  pace: RefreshPace,
  price: number,
  chunk: number,
  now: number,
): { state: RefreshState; page: OwedPage | null } {
  const { rates: known, periods } = planOf(before, pace, price, now)
  const state = { ...before, rates: nextOlder(known) ? known : owe(known, periods, chunk, now) }
  for (let next = nextOlder(state.rates); next; next = nextOlder(state.rates)) {
    const { band, depth } = next
    const rates = notOwed(state.rates, band)
    const period = periods[band] ?? 0
    const minutesSinceShown = depth <= (state.newestRead ?? 0) ? (now - state.startedAt) / MINUTE_MS : period
    if (minutesSinceShown >= period) {
      const number = pageAt(depth, state, pace)
      const elapsed = Math.min(minutesSinceShown, sinceWalk(number, state, now))
      return {
        state,
        page: {
          number,
          after(written) {
            if (!written) return { ...state, rates }
            const found = written.added + written.changed
            return {
              ...state,
              older: state.older + written.added,
              rates: afterPage(rates, band, found, elapsed),
            }
          },
        },
      }
    }
    state.rates = rates
  }
  return { state, page: null }
}

/** The state once a full walk has read a page. For bands of pages that only walks read, that shows how often their rows change. */
export function afterWalked(
  state: RefreshState,
  pace: RefreshPace,
  price: number,
  page: { number: number; found: number },
  now: number,
): RefreshState {
  const { number, found } = page
  const { rates, walkEvery, periods } = planOf(state, pace, price, now)
  // A look back at a page that the walk has read before does not move its position.
  const isOn = number === 1 || number > (state.walked?.page ?? 0)
  const after = isOn ? { ...state, walked: { page: number, at: now } } : state
  const depth = pageAt(number, state, pace)
  const band = rates.bands.findIndex(({ from, to }) => depth >= from && depth <= to)
  if (band < 0 || (periods[band] ?? 0) * MINUTE_MS < walkEvery) return after
  return { ...after, rates: afterPage(rates, band, found, sinceWalk(number, state, now)) }
}

/** Minutes since a full walk read a page: the one under way, as far as it has come, or the last complete one. */
function sinceWalk(page: number, state: RefreshState, now: number): number {
  const { walkAt = state.startedAt, walkTook, lastPage, walked } = state
  const took = walkTook / Math.max(1, lastPage)
  const readAt =
    walked && page <= walked.page ? walked.at - took * (walked.page - page) : walkAt + took * page
  return Math.max(0, now - readAt) / MINUTE_MS
}

/** The page at this depth, counted from the newest end; or the depth of a page. */
function pageAt(depth: number, { places, lastPage }: RefreshState, { newest }: RefreshPace): number {
  return newestEnd(places, newest) === 'last' ? Math.max(1, lastPage - depth + 1) : depth
}

/** What is read of a list: its newest end and what else is due, or older pages alone. */
export type Reads = 'newest' | 'older'

/** A list that this process keeps fresh. */
export interface KnownList<L> {
  list: L
  policy: RefreshPolicy
  state: RefreshState
  /** When this process could not begin it last, as where its token is held: that leaves no trace in the state. Epoch milliseconds; absent: never. */
  failed: Partial<Record<Reads, number>>
  /** Whether this process reads it now: it refreshes itself then. */
  isRead: boolean
}

/** How long after such a failure the older pages of a list are tried again. Milliseconds. */
const AFTER_OLDER_MS = 60_000

/**
 * Which lists of one budget have something to read now: as far as the share has room, newest ends, the most urgent one first; then the older pages of the list that has waited longest for them. Whoever reads a list charges the share for it.
 */
export function dueLists<L>(lists: readonly KnownList<L>[], now: number): { list: L; reads: Reads }[] {
  const share = lists[0]?.policy.share
  if (!share) return []
  const rules = share.rules()
  let known = share.known()
  const price = priceOf(known)
  const newest = lists
    .map((one) => {
      const { state, policy, failed } = one
      const again = lastFailure(failed.newest, now) + newestInterval(state, policy, price)
      const dueAt = Math.max(newestDueAt(state, policy, price, now), again)
      return { ...one, dueAt, urgency: urgencyOf(state, policy, now) }
    })
    .filter(({ dueAt }) => dueAt <= now)
    .toSorted((a, b) => b.urgency - a.urgency)
  const free = lists.filter(({ isRead }) => !isRead)
  const owedOf = ({ state, policy }: KnownList<L>) =>
    owedSince(state, policy) ?? owedAt(state, policy, price, rules.chunk)
  const older = free
    .toSorted((a, b) => bandsAtOf(a) - bandsAtOf(b))
    .find((one) => lastFailure(one.failed.older, now) + AFTER_OLDER_MS <= now && owedOf(one) <= now)
  const dueSince = [...newest.map(({ dueAt }) => dueAt), older ? owedOf(older) : now]
  share.noteWaits({ isLate: now - Math.min(...dueSince) > LATE_MS, mostUrgent: newest[0]?.urgency ?? 0 })
  const due: { list: L; reads: Reads }[] = []
  for (const { list, state, policy, urgency } of newest.filter(({ isRead }) => !isRead)) {
    if (!mayBegin(known, rules, 'newest', share.partOfMost(urgency))) break
    due.push({ list, reads: 'newest' })
    known = { ...known, level: known.level + expectedRequests(state, policy.newest, now) }
  }
  return older && mayBegin(known, rules, 'visit') ? [...due, { list: older.list, reads: 'older' }] : due
}

function bandsAtOf({ state }: { state: RefreshState }): number {
  return state.rates?.bandsAt ?? state.startedAt
}

/** A time in the future was noted before the clock was set back: how long ago it is is not known. */
function lastFailure(failedAt: number | undefined, now: number): number {
  return failedAt === undefined || failedAt > now ? Number.NEGATIVE_INFINITY : failedAt
}
