import { describe, expect, it } from 'vitest'
import { type FreshnessSetting, measureFreshness, oneList } from './measure.ts'
import { SETTING } from './measure-policies.ts'
import { policyNamed } from './policies.ts'
import { summarize } from './table.ts'

/** A small list for two days; what is promised of these was measured on more. */
const SMALL = { ...SETTING, rows: 5000, before: 1, days: 1 }

function measure(name: string, setting: FreshnessSetting) {
  return measureFreshness(policyNamed(name), oneList(setting), 1)
}

describe('a list that is refreshed each five minutes', () => {
  it.each([
    { order: 'first', killed: 0 },
    { order: 'last', killed: 0 },
    { order: 'by update', killed: 0 },
    { order: 'first', killed: 0.2 },
    { order: 'last', killed: 0.2 },
  ] as const)(
    'shows new rows in time, within its share, and claims what is true: $order, $killed',
    (list) => {
      const measured = measure('share 10 %', { ...SMALL, ...list })
      const row = summarize('', measured)

      expect(row.newAge.p95).toBeLessThanOrEqual(5)
      expect(row.changedAge.mean).toBeLessThan(15)
      expect(row.wrongRows).toBeLessThan(50)
      expect(row.requestsPerDay).toBeLessThan(8640 + 200 + 300)
      expect({ untrue: measured.untrue, refreshes: measured.refreshes > 500 }).toEqual({
        untrue: 0,
        refreshes: true,
      })
    },
  )
})

describe('workers that share a token', () => {
  /** Lists of which the shortest is walked instead of refreshed. */
  const lists = [
    { rows: 5000, arrivals: 10 },
    { rows: 500, arrivals: 1 },
    { rows: 50, arrivals: 1 },
  ].map((list) => ({ ...SMALL, order: 'first' as const, ...list }))
  const play = (workers: number, killedSteps: number) => {
    const token = { ...SMALL, lists, workers, killedSteps }
    return measureFreshness(policyNamed('share 10 %'), token, 1)
  }

  it('keep its lists as fresh as one process does, within the same share, though they are killed', () => {
    const alone = play(1, 0)
    const killed = play(2, 0.01)

    expect({ alone: alone.lost, killed: killed.lost > 20 }).toEqual({ alone: 0, killed: true })
    expect({ untrue: killed.untrue, refreshes: killed.refreshes > 500 }).toEqual({
      untrue: 0,
      refreshes: true,
    })
    expect(killed.fullestHour).toBeLessThanOrEqual(1.02)
    expect(killed.wrongRows).toBeLessThan(alone.wrongRows * 1.1)
    for (const { newAges } of killed.lists) expect(quantile(newAges, 0.95)).toBeLessThan(6)
  })
})

function quantile(ages: readonly number[], part: number): number {
  return ages.toSorted((a, b) => a - b)[Math.floor(ages.length * part)] ?? Number.POSITIVE_INFINITY
}

describe('a list without an order', () => {
  it('is read evenly, and nothing is claimed of its new rows', () => {
    const measured = measure('share 10 %', { ...SMALL, order: 'random' })

    expect(measured.untrue).toBe(0)
    expect(summarize('', measured).newAge.p95).toBeLessThan(60)
  })
})

describe('a list that is walked once a day', () => {
  it('has new rows half a day late, and makes no claims', () => {
    const measured = measure('a walk a day', { ...SMALL, order: 'first' })

    expect(summarize('', measured).newAge.median).toBeGreaterThan(600)
    expect(measured.refreshes).toBe(0)
  })
})
