import type { RefreshState } from './state.ts'

/** What refreshes may use of a token, and who shares it. */
export interface RefreshBudget {
  /** How often a list is refreshed at most, in milliseconds. */
  every: number
  /** Percent of the limit that refreshes may use, older pages included. */
  share: number
  /** Requests a minute that the token allows; null where nothing is known. */
  limit: number | null
  /** Of each job of the token that is refreshed: requests that a refresh takes, as its state says. */
  costs: readonly (number | null)[]
}

/** Where nothing announces a limit, none was learned and none is configured. Requests a minute. */
const USUAL_LIMIT = 60

/** What a refresh takes of which none is known: a page at each end, and one that grew. */
const USUAL_COST = 2

/** A list of at most so many pages is walked whole: that takes as many requests, and claims more. */
const SHORT_PAGES = 4

const MINUTE = 60_000

/** Milliseconds between two refreshes of a job: `every`, or longer where all jobs of the token together would use more. */
export function refreshInterval(budget: RefreshBudget): number {
  return Math.max(budget.every, (requestsOfAll(budget) / allowed(budget)) * MINUTE)
}

/** Pages a minute that each job has left for older pages. */
export function olderPagesBudget(budget: RefreshBudget): number {
  const perMinute = (requestsOfAll(budget) * MINUTE) / refreshInterval(budget)
  return Math.max(0, allowed(budget) - perMinute) / Math.max(1, budget.costs.length)
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

/** Whether a full walk takes the place of the refresh. */
export function isWalkedWhole({ lastPage }: Pick<RefreshState, 'lastPage'>): boolean {
  return lastPage <= SHORT_PAGES
}

/** Requests a minute. */
function allowed({ share, limit }: RefreshBudget): number {
  return ((limit ?? USUAL_LIMIT) * share) / 100
}

function requestsOfAll({ costs }: RefreshBudget): number {
  return costs.reduce<number>((sum, cost) => sum + (cost ?? USUAL_COST), 0)
}
