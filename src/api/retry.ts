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
export async function withRetry<T>(attempt: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { rules, sleep, random, signal, onRetry } = options
  for (let failures = 0; ; ) {
    try {
      return await attempt()
    } catch (error) {
      if (error instanceof RateLimitedError) continue
      failures++
      if (!(error instanceof RetryableError) || failures >= rules.attempts) throw error
      const delayMs = retryDelay(failures, error.retryAfterMs, rules, random)
      onRetry(error, delayMs)
      await sleep(delayMs, signal)
    }
  }
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
