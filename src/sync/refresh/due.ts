import type { RefreshState } from './state.ts'

/** What refreshes may use of a token, and who shares it. */
export interface RefreshBudget {
  /** How often a list is refreshed at most, in milliseconds. */
  every: number
  /** Percent of the limit that refreshes may use, older pages included. */
  share: number
  /** Requests a minute that the token allows; null where nothing is known. */
  limit: number | null
  load: RefreshLoad
}

/** How often a job is refreshed, and what that may cost. */
export interface RefreshPolicy {
  /** Milliseconds between two refreshes. */
  every: number
  /** Percent of the rate limit that all refreshes with one token may use. */
  share: number
  /** Requests of one refresh of every job of the token; `own`: this job's, null if unknown. */
  load(own: number | null): RefreshLoad
  /** Milliseconds between two full walks by the schedule. */
  walkEvery: number
  /**
   * Takes the part of the share that a refresh between the pages of a walk needs. `own`: as of `load`. Returns null, or when to
   * ask again, in epoch milliseconds.
   */
  takeTurn(own: number | null): Promise<number | null>
}

/** What one refresh of each job of a token takes. */
export interface RefreshLoad {
  lists: number
  requests: number
}

/** Where nothing announces a limit, none was learned and none is configured. Requests a minute. */
const USUAL_LIMIT = 60

/** Requests of a refresh while none is known: mostly two pages at one end, or one at each. */
const USUAL_COST = 2

/** A list of at most so many pages is walked whole: that takes as many requests, and claims more. */
const SHORT_PAGES = 4

const MINUTE = 60_000

/** Milliseconds between two refreshes of a job: `every`, or longer where all jobs of the token together would use more. */
export function refreshInterval(budget: RefreshBudget): number {
  return Math.max(budget.every, (budget.load.requests / allowed(budget)) * MINUTE)
}

/** For how long a refresh uses up the share, in milliseconds. `cost`: as the state of its job says. */
export function timeForRefresh(budget: Pick<RefreshBudget, 'share' | 'limit'>, cost: number | null): number {
  return ((cost ?? USUAL_COST) / allowed(budget)) * MINUTE
}

/** Pages a minute that each job has left for older pages. */
export function olderPagesBudget(budget: RefreshBudget): number {
  const { lists, requests } = budget.load
  const perMinute = (requests * MINUTE) / refreshInterval(budget)
  return Math.max(0, allowed(budget) - perMinute) / Math.max(1, lists)
}

/**
 * When the next refresh is due, in epoch milliseconds. Missed ones are not made up for; a clock that was set back delays
 * none for long.
 */
export function dueAt(
  { startedAt, triedAt }: Pick<RefreshState, 'startedAt' | 'triedAt'>,
  interval: number,
  now: number,
): number {
  const last = Math.max(startedAt, triedAt)
  return last > now + interval ? now : last + interval
}

/** Whether the clock was set back since: what is claimed by a clock that ran ahead is not true yet. */
export function isAhead(
  { freshAsOf, startedAt }: Pick<RefreshState, 'freshAsOf' | 'startedAt'>,
  now: number,
): boolean {
  return freshAsOf > now || startedAt > now
}

/** Whether a full walk takes the place of the refresh. */
export function isWalkedWhole({ lastPage }: Pick<RefreshState, 'lastPage'>): boolean {
  return lastPage <= SHORT_PAGES
}

/** Requests a minute. */
function allowed({ share, limit }: Pick<RefreshBudget, 'share' | 'limit'>): number {
  return ((limit ?? USUAL_LIMIT) * share) / 100
}

/** `costs`: of each job that is refreshed, the requests that a refresh takes, as its state says; null where none is known. */
export function loadOf(costs: readonly (number | null)[]): RefreshLoad {
  return { lists: costs.length, requests: costs.reduce<number>((sum, cost) => sum + (cost ?? USUAL_COST), 0) }
}

/** The same after the cost of one list has become another. */
export function withOwnCost(
  { lists, requests }: RefreshLoad,
  known: number | null,
  own: number,
): RefreshLoad {
  return { lists, requests: requests + own - (known ?? USUAL_COST) }
}
