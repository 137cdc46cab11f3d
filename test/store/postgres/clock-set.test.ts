import pLimit from 'p-limit'
import { describe, expect, it } from 'vitest'
import { createRateLimiter } from '../../../src/api/rate/limiter.ts'
import type { Rule } from '../../../src/store/core/sql.ts'
import { createServerClock, serverBudgets } from '../../../src/store/postgres/clock.ts'
import { type Ask, runRule } from '../../../src/store/postgres/connections.ts'
import { NOTHING } from '../../api/helpers/rate.ts'
import { createSteppedClock, settle } from '../../helpers/clock.ts'

const MINUTE = 60_000
const CEILING = 10

interface Kept {
  closedUntil: number
  known: string | null
  version: number
}

/** A server that keeps one budget, and whose clock can be set while workers run. Writes may have to wait for somebody's lock. */
function createDatabase(elapsed: () => number, sleep: (ms: number, signal: AbortSignal) => Promise<void>) {
  let ahead = 0
  let stalledUntil = 0
  let kept: Kept | null = null
  const answer = () => (kept ? [{ ...kept, at: elapsed() + ahead }] : [])
  const ask: Ask = async ({ text, values }) => {
    if (text.includes('FROM sync_gates')) return answer()
    if (stalledUntil > elapsed()) await sleep(stalledUntil - elapsed(), new AbortController().signal)
    if ((kept?.version ?? 0) !== values.version) return []
    kept = {
      closedUntil: Date.parse(String(values.closedUntil)),
      known: String(values.known),
      version: (kept?.version ?? 0) + 1,
    }
    return answer()
  }
  const set = (ms: number) => {
    ahead += ms
  }
  const stall = (ms: number) => {
    stalledUntil = elapsed() + ms
  }
  return { read: <T>(rule: Rule<T>) => runRule(ask, rule), time: () => elapsed() + ahead, set, stall }
}

/** Two workers under one ceiling that send as much as they may. `sent`: when, by a clock that nobody sets. */
async function createScene() {
  const { now: elapsed, sleep, pass } = createSteppedClock()
  const { read, time, set, stall } = createDatabase(elapsed, sleep)
  const stop = new AbortController()
  const { signal } = stop
  const sent: number[] = []
  for (let worker = 0; worker < 2; worker++) {
    const clock = createServerClock(elapsed)
    clock.compare()(time())
    const limiter = createRateLimiter({
      budgetKey: 'a',
      rules: {
        requestsPerMinute: CEILING,
        sharePercent: 100,
        refreshPercent: 10,
        fallbackWaitMs: MINUTE,
        maxWaitMs: 15 * MINUTE,
      },
      store: serverBudgets({ read, clock }),
      slots: pLimit(4),
      now: clock.now,
      sleep,
    })
    const send = async () => {
      while (!signal.aborted)
        await limiter
          .send(
            async () => {
              sent.push(elapsed())
              await sleep(100, signal)
              return { announced: NOTHING, isThrottled: false }
            },
            { urgency: 'walk', observe: () => {}, signal },
          )
          .catch(() => {})
    }
    void send()
  }
  const end = async () => {
    stop.abort()
    await settle()
  }
  return { set, stall, pass, sent, elapsed, end }
}

describe('the clock of the server, set while workers share a budget', () => {
  it.each([2000, 90_000, 30 * 24 * 60 * MINUTE])(
    'forward by %i ms and back, does not keep them waiting',
    async (ms) => {
      const { set, pass, sent, elapsed, end } = await createScene()
      await pass(3 * MINUTE + 20_000)
      for (const change of [ms, -ms]) {
        set(change)
        const from = elapsed()
        await pass(5 * MINUTE)

        expect(sent.filter((at) => at > from + 2 * MINUTE).length).toBeGreaterThanOrEqual(2 * CEILING)
      }
      await end()
    },
  )
})

function mostInAMinute(sent: readonly number[]): number {
  return Math.max(...sent.map((from) => sent.filter((at) => at >= from && at < from + MINUTE).length))
}

describe('a permit that a lock on the server keeps waiting', () => {
  it.each([5000, 30_000])('for %i ms counts from when its request leaves', async (ms) => {
    const { stall, pass, sent, end } = await createScene()
    await pass(MINUTE)
    stall(ms)
    await pass(5 * MINUTE)
    await end()

    expect(mostInAMinute(sent)).toBe(CEILING)
  })
})
