import { describe, expect, it } from 'vitest'
import { type RetryRules, retryDelay, withRetry } from '../../src/api/retry.ts'
import { JobError, RetryableError } from '../../src/errors.ts'

const RULES: RetryRules = { attempts: 4, minDelayMs: 1000, maxDelayMs: 60_000 }

/** Runs attempts that fail with these errors in turn and then succeed, and records the waits between them. */
async function run(errors: readonly Error[], attempts = 4) {
  const waits: [string, number][] = []
  let made = 0
  const attempt = async () => {
    const error = errors[made++]
    if (error) throw error
    return 'the page'
  }
  const rules = { ...RULES, attempts }
  const wait = async (delayMs: number, { message }: Error) => void waits.push([message, delayMs])
  const outcome = await withRetry(attempt, rules, () => 0.5, wait).catch((error: unknown) => error)
  return { outcome, made, waits }
}

const stop = () => Promise.reject(new Error('stopped'))

const failed = (message = 'failed') => new RetryableError('SERVER_ERROR', message)

describe('retrying', () => {
  it('waits longer each time, and says why', async () => {
    const waits = [
      ['first', 1500],
      ['second', 2500],
    ]
    expect(await run([failed('first'), failed('second')])).toEqual({ outcome: 'the page', made: 3, waits })
  })

  it.each([1, 2, 10])('makes no more than %i attempts, and says how many it made', async (attempts) => {
    const { outcome, made } = await run(
      Array.from({ length: 20 }, () => failed()),
      attempts,
    )

    expect(made).toBe(attempts)
    expect(outcome).toEqual(failed(attempts === 1 ? 'failed' : `failed (tried ${attempts} times)`))
  })

  it.each([new JobError('BAD_RESPONSE', 'no list'), new TypeError('?')])(
    'is not done for %s',
    async (error) => {
      expect(await run([error])).toEqual({ outcome: error, made: 1, waits: [] })
    },
  )

  it('ends with the error of the wait', async () => {
    await expect(
      withRetry(
        () => Promise.reject(failed()),
        RULES,
        () => 0,
        stop,
      ),
    ).rejects.toThrow('stopped')
  })
})

it.each<[number, Partial<RetryRules>, number, number]>([
  [1, {}, 1000, 2000],
  [2, {}, 1000, 4000],
  [6, {}, 1000, 60_000],
  [10_000, {}, 1000, 60_000],
  [3, { maxDelayMs: 500 }, 1000, 1000],
])('the delay after failure %i (%j) is between %i and %i ms', (failures, changed, least, most) => {
  const delays = [0, 0.5, 1].map((chance) => retryDelay(failures, { ...RULES, ...changed }, () => chance))

  expect(delays).toEqual([least, (least + most) / 2, most])
})
