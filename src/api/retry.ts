import pRetry from 'p-retry'
import { RetryableError } from '../errors.ts'

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
 * Runs `attempt` until it succeeds, fails for good, or has used up its attempts. Only a RetryableError is tried again. p-retry counts
 * and decides; its waits are left out (`minTimeout`), since it takes time and chance from the process, and here they are passed in.
 */
export function withRetry<T>(attempt: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { rules, sleep, random, signal, onRetry } = options
  return pRetry(attempt, {
    retries: rules.attempts - 1,
    minTimeout: 0,
    shouldRetry: ({ error }) => error instanceof RetryableError,
    // Called after the last attempt, too.
    onFailedAttempt: async ({ error, attemptNumber, retriesLeft }) => {
      if (!(error instanceof RetryableError)) return
      if (retriesLeft === 0) throw lastOf(error, attemptNumber)
      const delayMs = retryDelay(attemptNumber, rules, random)
      onRetry(error, delayMs)
      await sleep(delayMs, signal)
    },
  })
}

function lastOf(error: RetryableError, attempts: number): RetryableError {
  return attempts === 1 ? error : new RetryableError(error.code, `${error.message} (tried ${attempts} times)`)
}

/**
 * A backoff with full jitter: between the least delay and an end that doubles with each failure (`failures`
 * from 1), so that jobs that failed together do not retry together.
 */
export function retryDelay(failures: number, rules: RetryRules, random: () => number): number {
  const end = Math.min(rules.maxDelayMs, rules.minDelayMs * 2 ** Math.min(failures, 30))
  return Math.ceil(rules.minDelayMs + random() * Math.max(end - rules.minDelayMs, 0))
}
