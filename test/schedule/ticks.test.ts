import { describe, expect, it } from 'vitest'
import { createTicks } from '../../src/schedule/ticks.ts'

const NOON = Date.UTC(2026, 0, 1, 12)
const HOUR = 3_600_000
const DAY = 24 * HOUR

const hourly = { expression: '0 * * * *', timezone: 'UTC' }
const everySecond = { expression: '* * * * * *', timezone: 'UTC' }
const yearly = { expression: '0 0 1 1 *', timezone: 'UTC' }

describe('the ticks of schedules', () => {
  it('come once, at the same time for every worker, whenever it looks', () => {
    const prompt = createTicks([hourly], NOON)
    const late = createTicks([hourly], NOON - 1000)

    expect(prompt.come(NOON + HOUR - 1)).toEqual([])
    expect(prompt.come(NOON + HOUR)).toEqual([{ schedule: hourly, at: NOON + HOUR }])
    expect(prompt.come(NOON + HOUR)).toEqual([])
    expect(prompt.come(NOON + HOUR + 5)).toEqual([])
    expect(late.come(NOON + 1)).toEqual([{ schedule: hourly, at: NOON }])
    expect(late.come(NOON + HOUR + 700)).toEqual([{ schedule: hourly, at: NOON + HOUR }])
  })

  it('are one for all that were missed', () => {
    const ticks = createTicks([everySecond, hourly], NOON)

    expect(ticks.come(NOON + 2 * HOUR + 500)).toEqual([
      { schedule: everySecond, at: NOON + 1000 },
      { schedule: hourly, at: NOON + HOUR },
    ])
    expect(ticks.come(NOON + 2 * HOUR + 999)).toEqual([])
    expect(ticks.come(NOON + 2 * HOUR + 1000)).toEqual([
      { schedule: everySecond, at: NOON + 2 * HOUR + 1000 },
    ])
  })

  it('come though the next one is far away', () => {
    const ticks = createTicks([yearly], NOON)
    const came: number[] = []
    while (came.length === 0) {
      const now = ticks.quietUntil()
      expect(now).toBeLessThanOrEqual(NOON + 366 * DAY)
      came.push(...ticks.come(now).map(({ at }) => at))
    }

    expect(came).toEqual([Date.UTC(2027, 0, 1)])
  })

  it('come again after the clock was set back, or none would come for an hour', () => {
    const ticks = createTicks([hourly], NOON - HOUR)
    ticks.come(NOON + HOUR)

    expect(ticks.come(NOON + 60_000)).toEqual([])
    expect(ticks.come(NOON + HOUR)).toEqual([{ schedule: hourly, at: NOON + HOUR }])
    expect(ticks.come(NOON + 2 * HOUR)).toEqual([{ schedule: hourly, at: NOON + 2 * HOUR }])
  })

  it('come once though the clock is corrected by seconds', () => {
    const ticks = createTicks([hourly], NOON)
    ticks.come(NOON + HOUR)

    expect(ticks.come(NOON + HOUR - 3000)).toEqual([])
    expect(ticks.come(NOON + HOUR)).toEqual([])
  })
})
