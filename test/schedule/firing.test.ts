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

/** Returns when a schedule fires within `length` milliseconds of a fake clock that begins at `start`. */
async function firesOf(
  expression: string,
  timezone: string,
  start: number,
  length: number,
): Promise<string[]> {
  vi.setSystemTime(start)
  const times: string[] = []
  const stop = onSchedule(expression, timezone, () => times.push(new Date().toISOString()))

  await vi.advanceTimersByTimeAsync(length)

  stop()
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

  it('at the times that nextFireAfter returns, whatever the schedule', async () => {
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
    const stop = onSchedule(expression, 'UTC', () => times.push(new Date().toISOString()))
    // The wall clock jumps, and the clock of the timers does not.
    vi.setSystemTime(Date.parse(time))
    await vi.advanceTimersByTimeAsync(20 * MINUTE)
    stop()
    return times
  }

  it.each([
    ['* * * * *', '2026-11-20T08:00:10Z', 21],
    ['0 * * * *', '2026-11-20T08:00:10Z', 1],
    ['0 3 * * *', '2026-11-20T08:20:10Z', 1],
    ['0 3 * * *', '2026-12-20T08:20:10Z', 1],
    ['0 9 * * *', '2026-11-20T08:20:10Z', 0],
    ['1 1 * * *', '2026-11-20T01:01:45Z', 1],
  ])('fires once, not in a burst: %s until %s', async (expression, time, expected) => {
    const times = await wakeUpAt(expression, time)

    expect(new Set(times).size).toBe(times.length)
    expect(times).toHaveLength(expected)
  })
})

describe('a stopped schedule', () => {
  it('fires no more, can be stopped twice, and leaves no timer and no task behind', async () => {
    vi.setSystemTime(Date.parse('2026-11-20T08:00:30Z'))
    const fire = vi.fn<() => void>()
    const stop = onSchedule('* * * * *', 'UTC', fire)
    await vi.advanceTimersByTimeAsync(MINUTE)

    stop()
    stop()
    await vi.advanceTimersByTimeAsync(HOUR)

    expect(fire).toHaveBeenCalledOnce()
    expect(vi.getTimerCount()).toBe(0)
    expect(getTasks().size).toBe(0)
  })

  it('does not fire from a wake-up that was under way', async () => {
    vi.setSystemTime(Date.parse('2026-11-20T08:00:30Z'))
    const fire = vi.fn<() => void>()
    const stop = onSchedule('* * * * *', 'UTC', fire)

    // The timer goes off, and calls back only after this turn.
    vi.advanceTimersByTime(MINUTE)
    stop()
    await vi.advanceTimersByTimeAsync(0)

    expect(fire).not.toHaveBeenCalled()
  })
})

describe('node-cron’s own log', () => {
  it.each(['log', 'info', 'warn', 'error', 'debug'] as const)('never reaches console.%s', async (method) => {
    const print = vi.spyOn(console, method).mockImplementation(() => {})
    vi.setSystemTime(Date.parse('2026-11-20T08:00:30Z'))
    const stop = onSchedule('* * * * *', 'UTC', () => {
      throw new Error('a bug')
    })

    vi.setSystemTime(Date.parse('2026-11-20T12:00:30Z'))
    await vi.advanceTimersByTimeAsync(5 * MINUTE)
    stop()

    expect(print).not.toHaveBeenCalled()
    print.mockRestore()
  })
})
