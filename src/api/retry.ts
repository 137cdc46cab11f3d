import pRetry from 'p-retry'
import { RateLimitedError, RetryableError } from '../errors.ts'

export interface RetryRules {
  /** Tries of one page in all. */
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
 * Runs `attempt` until it succeeds, fails for good, or has used up its tries. Only a RetryableError is tried again; a
 * RateLimitedError too, but it uses up no try: the rate limiter waits when it is asked again.
 */
export function withRetry<T>(attempt: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { rules, sleep, random, signal, onRetry } = options
  const isLast = (failures: number) => failures >= rules.attempts
  return pRetry(attempt, {
    // The tries are counted here: out of retries, p-retry gives up on what uses up no retry, too.
    retries: Number.POSITIVE_INFINITY,
    // All waiting is our own sleep below, so that tests need no clock and a stop is heard at once.
    minTimeout: 0,
    shouldConsumeRetry: ({ error }) => !(error instanceof RateLimitedError),
    shouldRetry: ({ error, retriesConsumed }) =>
      error instanceof RateLimitedError || (error instanceof RetryableError && !isLast(retriesConsumed + 1)),
    onFailedAttempt: async ({ error, retriesConsumed }) => {
      // p-retry calls this after the last try too, when there is nothing left to wait for.
      if (!(error instanceof RetryableError) || isLast(retriesConsumed + 1)) return
      const delayMs = retryDelay(retriesConsumed + 1, error.retryAfterMs, rules, random)
      onRetry(error, delayMs)
      await sleep(delayMs, signal)
    },
  })
}

/**
 * Full jitter: any time between the least delay and an end that doubles with each failure (`failures` from 1), so that
 * many jobs that failed together do not come back together. The server's own word is never undercut.
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
