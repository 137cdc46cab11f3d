import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type RetryRules, retryDelay, withRetry } from '../../src/api/retry.ts'
import {
  InterruptedError,
  JobError,
  MirrorError,
  RateLimitedError,
  RetryableError,
  TokenRefusedError,
} from '../../src/errors.ts'

const RULES: RetryRules = { attempts: 4, minDelayMs: 1000, maxDelayMs: 60_000 }

/** Runs attempts that fail with these errors one after another and then succeed, and writes down what happened. */
async function run(errors: readonly Error[], rules: Partial<RetryRules> = {}, random = () => 0) {
  const log = { tries: 0, slept: [] as number[], told: [] as [string, number][] }
  const attempt = async () => {
    const error = errors[log.tries++]
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
    onRetry: (error, delayMs) => log.told.push([error.message, delayMs]),
  }).catch((error: unknown) => error)
  return { ...log, outcome }
}

const passing = (message = 'failed') => new RetryableError('SERVER_ERROR', message)
const throttled = () => new RateLimitedError('slower')

function times<T>(count: number, make: () => T): T[] {
  return Array.from({ length: count }, make)
}

describe('trying again', () => {
  it('is not needed after a success', async () => {
    expect(await run([])).toEqual({ outcome: 'the page', tries: 1, slept: [], told: [] })
  })

  it('goes on until a try succeeds', async () => {
    const { outcome, tries } = await run(times(3, passing))

    expect({ outcome, tries }).toEqual({ outcome: 'the page', tries: 4 })
  })

  it.each([1, 2, 10])('makes no more than %i tries, and throws what the last one threw', async (attempts) => {
    const errors = times(attempts + 1, passing)

    const { outcome, tries } = await run(errors, { attempts })

    expect(tries).toBe(attempts)
    expect(outcome).toBe(errors[attempts - 1])
  })

  it('sleeps between tries and not after the last', async () => {
    const { slept, told } = await run(times(5, passing))

    expect(slept).toHaveLength(3)
    expect(told).toHaveLength(3)
  })

  it.each([
    ['a JobError', new JobError('BAD_RESPONSE', 'no list')],
    ['a refused token', new TokenRefusedError('401')],
    ['a broken mirror', new MirrorError('disk full')],
    ['a stop', new InterruptedError('stopped')],
    ['an error of nobody', new Error('?')],
    ['a TypeError', new TypeError('?')],
    ['what looks like a network error', new TypeError('fetch failed')],
  ])('is not done for %s', async (_case, error) => {
    expect(await run([error])).toEqual({ outcome: error, tries: 1, slept: [], told: [] })
  })

  it('stops at an error of another kind in between', async () => {
    const error = new JobError('FORBIDDEN', '403')

    const { outcome, tries, slept } = await run([passing(), error, passing()])

    expect({ outcome, tries, slept: slept.length }).toEqual({ outcome: error, tries: 2, slept: 1 })
  })

  it('says why and for how long before it sleeps', async () => {
    const { told, slept } = await run([passing('first'), passing('second')], {}, () => 0.5)

    expect(told).toEqual([
      ['first', 1500],
      ['second', 2500],
    ])
    expect(slept).toEqual([1500, 2500])
  })
})

describe('a 429', () => {
  it.each([1, 4])('uses up no try of %i, however often it comes', async (attempts) => {
    const { outcome, tries, slept, told } = await run(times(50, throttled), { attempts })

    expect({ outcome, tries }).toEqual({ outcome: 'the page', tries: 51 })
    expect([...slept, ...told]).toEqual([])
  })

  it('uses up no try before, between and after others, the last one too', async () => {
    const errors = [throttled(), passing(), throttled(), passing(), passing(), throttled(), throttled()]

    const { outcome, slept } = await run(errors)

    expect(outcome).toBe('the page')
    expect(slept).toHaveLength(3)
  })

  it('gives back no try', async () => {
    const errors = [passing(), throttled(), passing(), throttled(), passing(), throttled(), passing()]

    const { outcome, tries } = await run(errors)

    expect(outcome).toBe(errors.at(-1))
    expect(tries).toBe(errors.length)
  })

  it('does not make the delays longer', async () => {
    const { slept } = await run([passing(), throttled(), throttled(), passing()], {}, () => 1)

    expect(slept).toEqual([2000, 4000])
  })
})

describe('a stop while sleeping', () => {
  it('ends the tries with what the sleep threw', async () => {
    const stop = new AbortController()
    const reason = new Error('stopped')
    let tries = 0

    const outcome = withRetry(() => Promise.reject(tries++ < 9 && passing()), {
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
    expect(tries).toBe(1)
  })
})

describe('the delay before a try', () => {
  it.each<[number, number, number]>([
    [1, 1000, 2000],
    [2, 1000, 4000],
    [3, 1000, 8000],
    [5, 1000, 32_000],
    [6, 1000, 60_000],
    [9, 1000, 60_000],
    [10_000, 1000, 60_000],
  ])('after failure %i is between %i and %i ms', (failures, least, most) => {
    expect(retryDelay(failures, null, RULES, () => 0)).toBe(least)
    expect(retryDelay(failures, null, RULES, () => 1)).toBe(most)
    expect(retryDelay(failures, null, RULES, () => 0.5)).toBe((least + most) / 2)
  })

  it.each<[string, number, number]>([
    ['longer than ours', 120_000, 120_000],
    ['shorter than ours', 500, 1000],
    ['0', 0, 1000],
  ])('is never shorter than the server said: %s', (_case, retryAfter, expected) => {
    expect(retryDelay(1, retryAfter, RULES, () => 0)).toBe(expected)
  })

  it('is the least one where that is above the greatest', () => {
    expect(retryDelay(3, null, { ...RULES, minDelayMs: 5000, maxDelayMs: 1000 }, () => 1)).toBe(5000)
  })

  it('lies within its bounds for any rules, and reaches all of them', () => {
    const below1 = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
    const ms = fc.nat({ max: 600_000 })
    const asked = fc.option(ms)

    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 2000 }),
        ms,
        ms,
        asked,
        below1,
        (failures, least, more, retryAfter, chance) => {
          const rules = { attempts: 10, minDelayMs: least, maxDelayMs: least + more }
          const end = Math.min(rules.maxDelayMs, least * 2 ** Math.min(failures, 60))

          const delay = retryDelay(failures, retryAfter, rules, () => chance)

          expect(Number.isInteger(delay)).toBe(true)
          expect(delay).toBeGreaterThanOrEqual(Math.max(least, retryAfter ?? 0))
          expect(delay).toBeLessThanOrEqual(Math.max(end, retryAfter ?? 0))
          expect(retryDelay(failures, null, rules, () => 1)).toBe(end)
        },
      ),
    )
  })
})
