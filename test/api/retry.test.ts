import { describe, expect, it } from 'vitest'
import { type RetryRules, retryDelay, withRetry } from '../../src/api/retry.ts'
import { JobError, RetryableError } from '../../src/errors.ts'

const RULES: RetryRules = { attempts: 4, minDelayMs: 1000, maxDelayMs: 60_000 }

/** Runs attempts that fail with these errors in turn and then succeed, and records what happened. */
async function run(errors: readonly Error[], rules: Partial<RetryRules> = {}, random = () => 0) {
  const log = { made: 0, slept: [] as number[], reports: [] as [string, number][] }
  const attempt = async () => {
    const error = errors[log.made++]
    if (error) throw error
    return 'the page'
  }
  const outcome = await withRetry(attempt, {
    rules: { ...RULES, ...rules },
    random,
    signal: new AbortController().signal,
    sleep: async (ms) => {
      log.slept.push(ms)
    },
    onRetry: (error, delayMs) => log.reports.push([error.message, delayMs]),
  }).catch((error: unknown) => error)
  return { ...log, outcome }
}

const retryable = (message = 'failed') => new RetryableError('SERVER_ERROR', message)

function times<T>(count: number, make: () => T): T[] {
  return Array.from({ length: count }, make)
}

describe('retrying', () => {
  it.each([1, 2, 10])('makes no more than %i attempts, and says how many it made', async (attempts) => {
    const { outcome, made } = await run(times(attempts + 1, retryable), { attempts })

    expect(made).toBe(attempts)
    expect(outcome).toEqual(retryable(attempts === 1 ? 'failed' : `failed (tried ${attempts} times)`))
  })

  it.each([
    ['a JobError', new JobError('BAD_RESPONSE', 'no list')],
    ['a TypeError', new TypeError('?')],
  ])('is not done for %s', async (_case, error) => {
    expect(await run([error])).toEqual({ outcome: error, made: 1, slept: [], reports: [] })
  })

  it('says why and for how long before it sleeps', async () => {
    const { reports, slept } = await run([retryable('first'), retryable('second')], {}, () => 0.5)

    expect(reports).toEqual([
      ['first', 1500],
      ['second', 2500],
    ])
    expect(slept).toEqual([1500, 2500])
  })
})

describe('a stop while sleeping', () => {
  it('ends the attempts with the error of the sleep', async () => {
    const stop = new AbortController()
    const reason = new Error('stopped')
    let made = 0

    const outcome = withRetry(() => Promise.reject(made++ < 9 && retryable()), {
      rules: RULES,
      random: () => 0,
      signal: stop.signal,
      sleep: async (_ms, signal) => {
        stop.abort(reason)
        signal.throwIfAborted()
      },
      onRetry: () => {},
    })

    await expect(outcome).rejects.toBe(reason)
    expect(made).toBe(1)
  })
})

describe('the delay before an attempt', () => {
  it.each<[number, number, number]>([
    [1, 1000, 2000],
    [2, 1000, 4000],
    [5, 1000, 32_000],
    [6, 1000, 60_000],
    [10_000, 1000, 60_000],
  ])('after failure %i is between %i and %i ms', (failures, least, most) => {
    expect(retryDelay(failures, RULES, () => 0)).toBe(least)
    expect(retryDelay(failures, RULES, () => 1)).toBe(most)
    expect(retryDelay(failures, RULES, () => 0.5)).toBe((least + most) / 2)
  })

  it('is the least one where the longest is shorter', () => {
    expect(retryDelay(3, { ...RULES, maxDelayMs: 500 }, () => 1)).toBe(1000)
  })
})
