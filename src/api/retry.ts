import pRetry from 'p-retry'
import { RetryableError } from '../errors.ts'

/** Delays in milliseconds. */
export interface RetryRules {
  /** For one page, the first one included. */
  attempts: number
  minDelay: number
  maxDelay: number
}

/**
 * Runs `attempt` until it succeeds, fails for good, or has used up its attempts. Only a RetryableError is tried again. p-retry counts
 * and decides; its waits are left out (`minTimeout`), since it takes time and chance from the process.
 */
export function withRetry<T>(
  attempt: () => Promise<T>,
  rules: RetryRules,
  random: () => number,
  wait: (delayMs: number, error: RetryableError) => Promise<void>,
): Promise<T> {
  return pRetry(attempt, {
    retries: rules.attempts - 1,
    minTimeout: 0,
    shouldRetry: ({ error }) => error instanceof RetryableError,
    // Called after the last attempt, too.
    onFailedAttempt: async ({ error, attemptNumber, retriesLeft }) => {
      if (!(error instanceof RetryableError)) return
      if (retriesLeft > 0) await wait(retryDelay(attemptNumber, rules, random), error)
      else if (attemptNumber > 1)
        throw new RetryableError(error.code, `${error.message} (tried ${attemptNumber} times)`)
    },
  })
}

/**
 * A backoff with full jitter: between the least delay and an end that doubles with each failure (`failures`
 * from 1), so that jobs that failed together do not retry together.
 */
export function retryDelay(failures: number, rules: RetryRules, random: () => number): number {
  const end = Math.min(rules.maxDelay, rules.minDelay * 2 ** failures)
  return Math.ceil(rules.minDelay + random() * Math.max(end - rules.minDelay, 0))
}
