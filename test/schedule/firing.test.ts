import * as fc from 'fast-check'
import { getTasks } from 'node-cron'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { checkCron } from '../../src/schedule/check.ts'
import { nextFireAfter, onSchedule } from '../../src/schedule/cron.ts'
import { anyExpression, anyMoment, anyZone } from './schedules.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'] })
})

afterEach(() => {
  vi.useRealTimers()
})

/** What a schedule fires from `start` on, for `length` milliseconds, by a clock that only this moves. */
async function firesOf(
  expression: string,
  timezone: string,
  start: number,
  length: number,
): Promise<string[]> {
  vi.setSystemTime(start)
  const times: string[] = []
  const firing = onSchedule(expression, timezone, () => times.push(new Date().toISOString()))

  await vi.advanceTimersByTimeAsync(length)

  firing.stop()
  return times
}

function expectedFires(expression: string, timezone: string, start: number, length: number): string[] {
  const times: string[] = []
  let time = nextFireAfter(expression, timezone, start, start + length)
  while (time !== null) {
    times.push(new Date(time).toISOString())
    time = nextFireAfter(expression, timezone, time, start + length)
  }
  return times
}

describe('a schedule fires', () => {
  it.each([
    ['*/15 * * * *', 'Europe/Paris', '2026-10-24T20:00:00Z'],
    ['*/15 * * * *', 'America/New_York', '2026-11-01T02:00:00Z'],
    ['30 1,2 * * *', 'Europe/Paris', '2026-10-24T20:00:00Z'],
    ['30 1,2 * * *', 'America/New_York', '2026-11-01T02:00:00Z'],
    ['30 1-3 * * *', 'Europe/Paris', '2026-03-28T20:00:00Z'],
    ['*/20 * * * *', 'America/New_York', '2026-03-08T02:00:00Z'],
    ['10,35 * * * *', 'Australia/Lord_Howe', '2026-04-04T10:00:00Z'],
    ['0 0 * * *', 'Asia/Kathmandu', '2026-11-20T10:00:00Z'],
  ])('through the change of the clocks: %s in %s', async (expression, timezone, start) => {
    const times = await firesOf(expression, timezone, Date.parse(start), 12 * HOUR)

    expect(times.length).toBeGreaterThan(0)
    expect(times).toEqual(expectedFires(expression, timezone, Date.parse(start), 12 * HOUR))
  })

  it('at the times that are foretold, whatever the schedule', async () => {
    await fc.assert(
      fc.asyncProperty(anyExpression(false), anyZone(), anyMoment(), async (expression, timezone, start) => {
        fc.pre(checkCron(expression) === null)

        const times = await firesOf(expression, timezone, start, 4 * HOUR)

        expect(times).toEqual(expectedFires(expression, timezone, start, 4 * HOUR))
      }),
      { numRuns: 40 },
    )
  })
})

describe('what the machine slept through', () => {
  const start = Date.parse('2026-11-20T01:00:30Z')

  async function wakeUpAt(expression: string, time: string): Promise<string[]> {
    const times: string[] = []
    vi.setSystemTime(start)
    const firing = onSchedule(expression, 'UTC', () => times.push(new Date().toISOString()))
    // The wall clock jumps; the timers' own clock stood still.
    vi.setSystemTime(Date.parse(time))
    await vi.advanceTimersByTimeAsync(20 * MINUTE)
    firing.stop()
    return times
  }

  it.each([
    ['* * * * *', '2026-11-20T08:00:10Z', 21],
    ['0 * * * *', '2026-11-20T08:00:10Z', 1],
    ['0 3 * * *', '2026-11-20T08:20:10Z', 1],
    ['0 3 * * *', '2026-12-20T08:20:10Z', 1],
    ['0 9 * * *', '2026-11-20T08:20:10Z', 0],
    ['1 1 * * *', '2026-11-20T01:01:45Z', 1],
  ])('fires once and not in a burst: %s until %s', async (expression, time, expected) => {
    const times = await wakeUpAt(expression, time)

    expect(new Set(times).size).toBe(times.length)
    expect(times).toHaveLength(expected)
  })
})

describe('the next run', () => {
  it('is told in the schedule’s own zone, years ahead if need be, until it is stopped', async () => {
    vi.setSystemTime(Date.parse('2026-11-20T08:00:00Z'))
    const nightly = onSchedule('30 2 * * *', 'Europe/Paris', () => {})
    const leapDay = onSchedule('0 0 29 2 1', 'UTC', () => {})

    expect(nightly.nextRun()).toEqual(new Date('2026-11-21T01:30:00Z'))
    expect(leapDay.nextRun()).toEqual(new Date('2044-02-29T00:00:00Z'))

    nightly.stop()
    leapDay.stop()
    expect([nightly.nextRun(), leapDay.nextRun()]).toEqual([null, null])
  })
})

describe('a stopped schedule', () => {
  it('fires no more, however often it is stopped, and leaves no timer and no task behind', async () => {
    vi.setSystemTime(Date.parse('2026-11-20T08:00:30Z'))
    const fire = vi.fn<() => void>()
    const firing = onSchedule('* * * * *', 'UTC', fire)
    await vi.advanceTimersByTimeAsync(MINUTE)

    firing.stop()
    firing.stop()
    await vi.advanceTimersByTimeAsync(HOUR)

    expect(fire).toHaveBeenCalledOnce()
    expect(vi.getTimerCount()).toBe(0)
    expect(getTasks().size).toBe(0)
  })

  it('does not fire from a wake-up that was under way', async () => {
    vi.setSystemTime(Date.parse('2026-11-20T08:00:30Z'))
    const fire = vi.fn<() => void>()
    const firing = onSchedule('* * * * *', 'UTC', fire)

    // The timer goes off, and what it calls comes only after this turn.
    vi.advanceTimersByTime(MINUTE)
    firing.stop()
    await vi.advanceTimersByTimeAsync(0)

    expect(fire).not.toHaveBeenCalled()
  })
})

describe('node-cron’s own log', () => {
  it.each(['log', 'info', 'warn', 'error', 'debug'] as const)('never reaches console.%s', async (method) => {
    const print = vi.spyOn(console, method).mockImplementation(() => {})
    vi.setSystemTime(Date.parse('2026-11-20T08:00:30Z'))
    const firing = onSchedule('* * * * *', 'UTC', () => {
      throw new Error('a bug')
    })

    vi.setSystemTime(Date.parse('2026-11-20T12:00:30Z'))
    await vi.advanceTimersByTimeAsync(5 * MINUTE)
    firing.stop()

    expect(print).not.toHaveBeenCalled()
    print.mockRestore()
  })
})
