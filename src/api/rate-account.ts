import {
  asOfNow,
  BLOCK_MS,
  type Block,
  type Budget,
  type RateRules,
  unanswered,
  withSent,
} from './rate-budget.ts'
import { decideByServer, openings } from './rate-decision.ts'
import { type Announcement, LONGEST_MS } from './rate-headers.ts'
import { type Answered, currentWindow, MINUTE_MS, ROUNDING_MS, windowAfter } from './rate-window.ts'

/** A 429, or another answer that asks for a pause. */
export interface Throttled {
  /** Epoch milliseconds. */
  at: number
  throttled: Announcement
  /** Keeps several processes from coming back in the same instant. */
  jitterMs: number
}

/** What a process has done with its block since it accounted for it last. */
export interface Report {
  by: string
  /** When requests left; epoch milliseconds. */
  sent: readonly number[]
  /** In the order in which they came. */
  answers: readonly (Answered | Throttled)[]
  /** Requests on their way. */
  inFlight: number
}

/** The budget after a process has accounted for its block; what it has not sent it has given back. */
export function settle(budget: Budget, report: Report, rules: RateRules, now: number): Budget {
  const { by, sent, answers, inFlight } = report
  const valid = asOfNow(budget, now)
  const counted = rules.requestsPerMinute === null ? valid : withSent(valid, sent)
  const heard = answers.reduce((after, answer) => afterOne(after, answer, answers.length, rules), counted)
  const until = budget.blocks.find((block) => block.by === by)?.until ?? now
  return withBlock(asOfNow(heard, now), { by, count: 0, until, inFlight })
}

function afterOne(budget: Budget, answer: Answered | Throttled, together: number, rules: RateRules): Budget {
  return 'throttled' in answer ? afterThrottle(budget, answer, rules) : afterAnswer(budget, answer, together)
}

/** One of several processes may take a third of what is left, so that the others find something. */
const SHARE_BESIDE_OTHERS = 3

/** More at once are no cheaper, and are missed by the others. */
const LARGEST_BLOCK = 25

/** Requests that our own ceiling allows so soon are taken beforehand, so that not each costs a transaction. */
const FORESIGHT_MS = BLOCK_MS / 2

/** Requests that a process may send: each from its own time on, and none after the last time. Epoch milliseconds. */
export interface Permits {
  from: readonly number[]
  until: number
}

/** Takes a block for a process out of a budget that is settled; an empty one where nothing may leave. */
export function take(
  budget: Budget,
  { by, inFlight }: Report,
  rules: RateRules,
  now: number,
): { budget: Budget; permits: Permits } {
  const allowed = decideByServer(budget, rules, now)
  const most = allowed.at > now ? 0 : Math.min(allowed.count, LARGEST_BLOCK)
  const times = opensSoon(budget, rules, now).slice(0, most)
  const isAlone = budget.blocks.every((block) => block.by === by)
  const from = isAlone ? times : times.slice(0, Math.ceil(times.length / SHARE_BESIDE_OTHERS))
  const windowEnd = currentWindow(budget.window, now)?.endsAt ?? Number.POSITIVE_INFINITY
  const until = Math.min(now + BLOCK_MS, windowEnd)
  return { budget: withBlock(budget, { by, count: from.length, until, inFlight }), permits: { from, until } }
}

function opensSoon(budget: Budget, { requestsPerMinute: most }: RateRules, now: number): number[] {
  if (most === null) return Array.from({ length: LARGEST_BLOCK }, () => now)
  return openings(budget, most, now).filter((at) => at <= now + FORESIGHT_MS)
}

function withBlock(budget: Budget, block: Block): Budget {
  const others = budget.blocks.filter(({ by }) => by !== block.by)
  return { ...budget, blocks: unanswered({ blocks: [block] }) > 0 ? [...others, block] : others }
}

/** The budget after an answer other than 429, or after a request that got none; one of so many that are told together. */
export function afterAnswer(budget: Budget, answered: Answered, together: number): Budget {
  const { at, told } = answered
  // Nothing leaves while the gate is closed: this one left before the 429 and tells of a window that is used up.
  if (at < budget.closedUntil) return budget
  return {
    ...budget,
    heardAt: Math.max(budget.heardAt, at),
    throttled: told ? 0 : budget.throttled,
    window: windowAfter(budget.window, answered, unanswered(budget) + together),
    closedUntil: Math.max(budget.closedUntil, usedUpUntil(answered)),
  }
}

/** A budget that is used up for longer than a window of ours is a pause, which may be refused; 0 where it is none. */
function usedUpUntil({ at, told }: Answered): number {
  // A limit of 0 is how some servers write that there is none.
  const resetMs = told?.remaining === 0 && told.limit !== 0 ? told.resetMs : null
  return resetMs !== null && resetMs > MINUTE_MS ? at + Math.min(resetMs + ROUNDING_MS, LONGEST_MS) : 0
}

/**
 * The budget after a 429. What the server told counts, else the end of the window as far as it is known, else the
 * fallback; and from the second 429 in a row on a growing pause, since whatever it told was not enough.
 */
export function afterThrottle(budget: Budget, answer: Throttled, rules: RateRules): Budget {
  const { at, throttled: told, jitterMs } = answer
  // Of several that were in flight together, all but the first tell nothing of whether the pause was long enough.
  const isNews = at >= budget.closedUntil
  const { window, throttled } = budget
  const windowMs = window && window.endsAt > at ? window.endsAt - at : 0
  const toldMs = told.retryAfterMs ?? told.resetMs ?? Math.max(windowMs, rules.fallbackWaitMs)
  const grownMs = isNews && throttled > 0 ? Math.min(1000 * 2 ** throttled, rules.fallbackWaitMs) : 0
  const pauseMs = Math.min(Math.max(toldMs, grownMs) + ROUNDING_MS + jitterMs, LONGEST_MS)
  return {
    ...budget,
    window: null,
    throttledAt: at,
    closedUntil: Math.max(budget.closedUntil, at + pauseMs),
    throttled: throttled + (isNews ? 1 : 0),
  }
}
