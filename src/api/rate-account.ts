import { ceilingOf } from './ceiling.ts'
import { afterAnswer, afterThrottle, type Throttled } from './rate-answer.ts'
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
import { withCounted } from './rate-unannounced.ts'
import { type Answered, currentWindow } from './rate-window.ts'

/** What a process has done with its block since it accounted for it last. */
export interface Report {
  by: string
  /** When requests left; epoch milliseconds. */
  sent: readonly number[]
  /** In the order in which they came. */
  answers: readonly (Answered | Throttled)[]
  /** Requests on their way. */
  inFlight: number
  /** When answers came, in the last minute, that announced nothing. */
  unannounced: readonly number[]
}

/** The budget after a process has accounted for its block; what it has not sent it has given back. */
export function settle(budget: Budget, report: Report, rules: RateRules, now: number): Budget {
  const { by, sent, answers, inFlight, unannounced } = report
  const valid = asOfNow(budget, now)
  const counted = rules.requestsPerMinute === null ? valid : withSent(valid, sent)
  const heard = answers.reduce((after, answer) => afterOne(after, answer, answers.length, rules), counted)
  const until = budget.blocks.find((block) => block.by === by)?.until ?? now
  return withBlock(asOfNow(withUnannounced(heard, unannounced, now), now), { by, count: 0, until, inFlight })
}

/** Answers that announce nothing are counted only while a 429 is waited out: until then nobody has to know of them. */
export function isCounting({ throttled, closedUntil }: Budget, now: number): boolean {
  return throttled > 0 && now < closedUntil
}

function withUnannounced(budget: Budget, answeredAt: readonly number[], now: number): Budget {
  if (!isCounting(budget, now)) return budget
  return { ...budget, unannounced: withCounted(budget.unannounced, answeredAt, budget.throttledAt) }
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
  return openings(budget, ceilingOf(most), now).filter((at) => at <= now + FORESIGHT_MS)
}

function withBlock(budget: Budget, block: Block): Budget {
  const others = budget.blocks.filter(({ by }) => by !== block.by)
  return { ...budget, blocks: unanswered({ blocks: [block] }) > 0 ? [...others, block] : others }
}
