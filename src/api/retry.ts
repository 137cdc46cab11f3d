import pRetry from 'p-retry'
import { RateLimitedError, RetryableError } from '../errors.ts'

export interface RetryRules {
  /** For one page, the first one included. */
  attempts: number
  minDelayMs: number
  maxDelayMs: number
}

export interface RetryOptions {
  rules: RetryRules
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
  random: () => number
  signal: AbortSignal
  onRetry: (error: RetryableError, delayMs: number) => void
}

/**
 * Runs `attempt` until it succeeds, fails for good, or has used up its attempts. A RetryableError is retried,
 * and so is a RateLimitedError, which does not count: the rate limiter waits before the next attempt.
 */
export function withRetry<T>(attempt: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { rules, sleep, random, signal, onRetry } = options
  const isLast = (failures: number) => failures >= rules.attempts
  return pRetry(attempt, {
    // Counted in `isLast`: without retries left, p-retry gives up on errors that consume none, too.
    retries: Number.POSITIVE_INFINITY,
    // `sleep` below does all the waiting, so that tests need no clock and an abort ends it at once.
    minTimeout: 0,
    shouldConsumeRetry: ({ error }) => !(error instanceof RateLimitedError),
    shouldRetry: ({ error, retriesConsumed }) =>
      error instanceof RateLimitedError || (error instanceof RetryableError && !isLast(retriesConsumed + 1)),
    onFailedAttempt: async ({ error, retriesConsumed }) => {
      // p-retry calls this after the last attempt, too.
      if (!(error instanceof RetryableError) || isLast(retriesConsumed + 1)) return
      const delayMs = retryDelay(retriesConsumed + 1, error.retryAfterMs, rules, random)
      onRetry(error, delayMs)
      await sleep(delayMs, signal)
    },
  })
}

/**
 * A backoff with full jitter: between the least delay and an end that doubles with each failure (`failures`
 * from 1), so that jobs that failed together do not retry together. Never shorter than the server's
 * `retryAfterMs`.
 */
export function retryDelay(
  failures: number,
  retryAfterMs: number | null,
  rules: RetryRules,
  random: () => number,
): number {
  const end = Math.min(rules.maxDelayMs, rules.minDelayMs * 2 ** Math.min(failures, 30))
  const delay = rules.minDelayMs + random() * Math.max(end - rules.minDelayMs, 0)
  return Math.ceil(Math.max(delay, retryAfterMs ?? 0))
}
