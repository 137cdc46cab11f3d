import type { End } from './answer.ts'
import { newestEnd } from './ends.ts'
import { isWalkedWhole, MISSING, newestEvery } from './price.ts'
import {
  afterOlder,
  afterWalkedPage,
  depthsOf,
  elapsedAt,
  type ListTimes,
  nextOlder,
  owe,
  pageAt,
  periodsOf,
  visitAt,
} from './rates.ts'
import { afterOlderPage, knownRates, type RefreshState } from './state.ts'

/** What the configuration says of a list. Milliseconds. */
export interface RefreshPace {
  /** Its newest end is read no more often. */
  every: number
  /** Between two full walks by the schedule. */
  walkEvery: number
  newest: End | 'auto'
}

/** A reading of the newest end, with one that failed or was killed. */
export function newestAt({ startedAt, triedAt }: Pick<RefreshState, 'startedAt' | 'triedAt'>): number {
  return Math.max(startedAt, triedAt)
}

/** Milliseconds between two readings of the newest end. */
export function newestInterval(state: RefreshState, { every, newest }: RefreshPace, price: number): number {
  return newestEvery(price, knownRates(state, newest, state.startedAt).news, {
    every,
    lastPage: state.lastPage,
  })
}

/** When the newest end is read next, in epoch milliseconds. Missed ones are not made up for; a clock that was set back delays none for long. */
export function newestDueAt(state: RefreshState, pace: RefreshPace, price: number, now: number): number {
  const interval = newestInterval(state, pace, price)
  const last = newestAt(state)
  return last > now + interval ? now : last + interval
}

/** Requests that a reading of the newest end will probably take. */
export function expectedRequests(state: RefreshState, newest: End | 'auto', now: number): number {
  if (isWalkedWhole(state)) return state.lastPage + 1
  const added = knownRates(state, newest, now).news / MISSING
  return 2 + Math.floor((added * Math.max(0, now - newestAt(state))) / 60_000 / 25)
}

function planOf(state: RefreshState, pace: RefreshPace, price: number, now: number) {
  const rates = knownRates(state, pace.newest, now)
  const depths = depthsOf(state.lastPage, rates.hasNewestEnd)
  const { walkAt = state.startedAt, walkTook } = state
  const times: ListTimes = {
    every: pace.every,
    walkEvery: Math.max(pace.walkEvery, walkTook),
    walkAt,
    walkTook,
  }
  return { rates, depths, times, periods: periodsOf(rates, price, times) }
}

/** Since when older pages are owed, epoch milliseconds; null: none are. */
export function owedSince(state: RefreshState, pace: RefreshPace): number | null {
  if (isWalkedWhole(state) || !state.rates) return null
  const rates = knownRates(state, pace.newest, state.startedAt)
  return nextOlder(rates, depthsOf(state.lastPage, rates.hasNewestEnd)) ? rates.bandsAt : null
}

/** When older pages are owed next, if none are now. Epoch milliseconds. */
export function owedAt(state: RefreshState, pace: RefreshPace, price: number, chunk: number): number {
  if (isWalkedWhole(state)) return Number.POSITIVE_INFINITY
  const { rates, depths, periods } = planOf(state, pace, price, state.startedAt)
  return visitAt(rates, depths, periods, chunk)
}

/** The state once the older pages of the time until now are owed. */
export function withOwed(state: RefreshState, pace: RefreshPace, price: number, now: number): RefreshState {
  const { rates, depths, periods } = planOf(state, pace, price, now)
  return { ...state, rates: owe(rates, depths, periods, now) }
}

/** An older page to read, and what is known once it is read. */
export interface OwedPage {
  /** Of the list. */
  number: number
  /** The state after it. Null: it could not be read. */
  after(written: { added: number; changed: number } | null): RefreshState
}

/** The next older page that is owed; null where none is. `state`: passes those that the newest end's reading has just shown. */
export function takeOwed(
  state: RefreshState,
  pace: RefreshPace,
  price: number,
  now: number,
): { state: RefreshState; page: OwedPage | null } {
  const { rates, depths, times, periods } = planOf(state, pace, price, now)
  const next = nextOlder(rates, depths)
  if (!next) return { state, page: null }
  const period = periods[next.band] ?? 0
  const shown = next.depth <= (state.newestRead ?? 0) ? (now - state.startedAt) / 60_000 : period
  if (shown < period)
    return takeOwed(afterOlderPage(state, afterOlder(rates, next, null, shown), 0), pace, price, now)
  const number = Math.max(1, pageAt(next.depth, newestEnd(state.places, pace.newest), state.lastPage))
  const elapsed = elapsedAt(number, state.lastPage, Math.min(period, shown), times, now)
  const after: OwedPage['after'] = (written) => {
    const found = written && written.added + written.changed
    return afterOlderPage(state, afterOlder(rates, next, found, elapsed), written?.added ?? 0)
  }
  return { state, page: { number, after } }
}

/** The state once a full walk has read a page: it tells how often rows change where no band reads. */
export function afterWalked(
  state: RefreshState,
  pace: RefreshPace,
  price: number,
  page: { number: number; found: number },
  now: number,
): RefreshState {
  if (isWalkedWhole(state)) return state
  const { rates, depths, times, periods } = planOf(state, pace, price, now)
  const depth = pageAt(page.number, newestEnd(state.places, pace.newest), state.lastPage)
  const band = depths.findIndex(({ from, to }) => depth >= from && depth <= to)
  if (band < 0 || (periods[band] ?? 0) * 60_000 < times.walkEvery) return state
  const elapsed = elapsedAt(page.number, state.lastPage, Number.POSITIVE_INFINITY, times, now)
  return { ...state, rates: afterWalkedPage(rates, band, page.found, elapsed) }
}
