import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { addCredit, type BandState, takeOlderPage } from '../../../src/sync/refresh/band-credit.ts'
import { type Band, type BandSetting, pageAt, planBands, sizeOf } from '../../../src/sync/refresh/bands.ts'

const MINUTE = 60_000

const SETTING: BandSetting = {
  pages: 4000,
  read: 0,
  interval: 5 * MINUTE,
  budget: 5.6,
  walkEvery: 1440 * MINUTE,
  hasNewestEnd: true,
}

function planText(plan: readonly Band[]): string {
  return plan.map(({ from, to, period }) => `${from}-${to} ${Math.round(period / MINUTE)}`).join(', ')
}

describe('how often older pages are read', () => {
  it.each([
    { setting: {}, plan: '2-4 17, 5-16 33, 17-64 66, 65-256 133, 257-1024 266' },
    {
      setting: { budget: 29.6 },
      plan: '2-4 6, 5-16 13, 17-64 25, 65-256 50, 257-1024 101, 1025-4000 201',
    },
    { setting: { read: 2 }, plan: '3-4 16, 5-16 33, 17-64 66, 65-256 131, 257-1024 263' },
    { setting: { read: 6, pages: 20, budget: 3 }, plan: '5-4 5, 7-16 5, 17-20 5' },
    { setting: { read: 30, pages: 20 }, plan: '5-4 5, 17-16 5, 21-20 5' },
    { setting: { budget: 0 }, plan: '' },
    { setting: { pages: 1 }, plan: '' },
    { setting: { pages: 10 }, plan: '2-4 5, 5-10 5' },
    { setting: { pages: 20, budget: 3 }, plan: '2-4 5, 5-16 6, 17-20 12' },
    { setting: { pages: 100, budget: 3 }, plan: '2-4 9, 5-16 17, 17-64 34, 65-100 68' },
    { setting: { hasNewestEnd: false }, plan: '1-4000 714' },
    { setting: { hasNewestEnd: false, pages: 40_000 }, plan: '' },
  ])('$setting: $plan', ({ setting, plan }) => {
    expect(planText(planBands({ ...SETTING, ...setting }))).toBe(plan)
  })

  it('never takes more than the budget, and none more often than refreshes come', () => {
    const pages = fc.integer({ min: 1, max: 100_000 })
    const budget = fc.double({ min: 0, max: 500, noNaN: true })
    fc.assert(
      fc.property(pages, budget, (count, most) => {
        const plan = planBands({ ...SETTING, pages: count, budget: most })
        const perMinute = plan.reduce((sum, band) => sum + (sizeOf(band) * MINUTE) / band.period, 0)

        expect(perMinute).toBeLessThanOrEqual(most * 1.000001)
        for (const { period } of plan) expect(period).toBeGreaterThanOrEqual(SETTING.interval)
      }),
    )
  })
})

describe('which older page is next', () => {
  const plan: Band[] = [
    { from: 2, to: 4, period: 10 * MINUTE },
    { from: 5, to: 16, period: 20 * MINUTE },
  ]

  function readFor(refreshes: number, elapsed = 5 * MINUTE): number[] {
    let bands: BandState[] = []
    const depths: number[] = []
    for (let refresh = 0; refresh < refreshes; refresh++) {
      bands = addCredit(bands, plan, elapsed, 5 * MINUTE)
      for (let taken = takeOlderPage(bands, plan); taken; taken = takeOlderPage(bands, plan)) {
        depths.push(taken.depth)
        bands = taken.next
      }
    }
    return depths
  }

  it('goes from old to new, and each page gets its turn in its period', () => {
    const depths = readFor(24)

    const shallow = depths.filter((depth) => depth <= 4)
    expect(shallow.slice(0, 6)).toEqual([4, 3, 2, 4, 3, 2])
    expect(depths.filter((depth) => depth > 4).slice(0, 13)).toEqual([
      16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 16,
    ])
    expect(shallow.length / 3).toBeCloseTo(12, 0)
    expect(depths.length).toBe(Math.floor(24 * 5 * (3 / 10 + 12 / 20) + 1e-9))
  })

  it('does not make up for a long pause', () => {
    expect(readFor(2, 600 * MINUTE).length).toBe(readFor(2).length)
    expect(readFor(2, -MINUTE)).toEqual([])
  })

  it('keeps within a band whose bounds have changed', () => {
    const states = [{ cursor: 40, credit: 1 }]

    expect(takeOlderPage(states, [{ from: 5, to: 16, period: MINUTE }])?.depth).toBe(16)
  })

  it.each([
    { newest: 'first' as const, page: 3 },
    { newest: 'last' as const, page: 98 },
    { newest: null, page: 3 },
  ])('counts from the newest end: $newest', ({ newest, page }) => {
    expect(pageAt(3, newest, 100)).toBe(page)
  })
})
