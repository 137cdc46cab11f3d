import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkCron, nextFireAfter } from '../../src/schedule/cron.ts'
import { startScheduler } from '../../src/schedule/scheduler.ts'
import { anyExpression, anyMoment, anyZone } from './schedules.ts'
import { createTimeline } from './timeline.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** A scheduler with one job whose runs take no time, and when they began. */
function createScene(expression: string, timezone: string, start: number) {
  const timeline = createTimeline(start)
  const times: string[] = []
  const run = async () => {
    times.push(new Date(timeline.now()).toISOString())
  }
  const job = { name: 'orders', expression, timezone, dueAtStart: false, run }
  const scheduler = startScheduler([job], { onOverlap() {}, onError() {} }, timeline)
  return { timeline, times, scheduler }
}

/** When a schedule fires within `length` milliseconds. */
async function firesOf(
  expression: string,
  timezone: string,
  start: number,
  length: number,
): Promise<string[]> {
  const { timeline, times, scheduler } = createScene(expression, timezone, start)
  await timeline.pass(length)
  await scheduler.stop()
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

  it.each([
    ['* * * * *', '2026-11-20T08:00:10Z', 21],
    ['0 * * * *', '2026-11-20T08:00:10Z', 1],
    ['0 3 * * *', '2026-11-20T08:20:10Z', 1],
    ['0 3 * * *', '2026-12-20T08:20:10Z', 1],
    ['0 9 * * *', '2026-11-20T08:20:10Z', 0],
    ['1 1 * * *', '2026-11-20T01:01:45Z', 1],
  ])('fires once, not in a burst: %s until %s', async (expression, time, expected) => {
    const { timeline, times, scheduler } = createScene(expression, 'UTC', start)

    timeline.set(Date.parse(time) - start)
    await timeline.pass(20 * MINUTE)
    await scheduler.stop()

    expect(new Set(times).size).toBe(times.length)
    expect(times).toHaveLength(expected)
  })

  it('fires within half a minute after the machine woke', async () => {
    const { timeline, times, scheduler } = createScene('0 3 * * *', 'UTC', start)

    timeline.set(5 * HOUR)
    await timeline.pass(30_000)
    await scheduler.stop()

    expect(times).toHaveLength(1)
  })
})

it('a clock that is set back by a day does not silence a schedule', async () => {
  const { timeline, times, scheduler } = createScene('0 * * * *', 'UTC', Date.parse('2026-11-20T08:30:00Z'))

  await timeline.pass(HOUR)
  timeline.set(-24 * HOUR)
  await timeline.pass(2 * HOUR)
  await scheduler.stop()

  expect(times).toEqual(['2026-11-20T09:00:00.000Z', '2026-11-19T10:00:00.000Z', '2026-11-19T11:00:00.000Z'])
})

it('a stopped schedule fires no more, and leaves no timer behind', async () => {
  const { timeline, times, scheduler } = createScene('* * * * *', 'UTC', Date.parse('2026-11-20T08:00:30Z'))
  await timeline.pass(MINUTE)
  const before = timeline.sleepers()

  await scheduler.stop()
  await timeline.pass(HOUR)

  expect(times).toHaveLength(1)
  expect([before, timeline.sleepers()]).toEqual([1, 0])
})
