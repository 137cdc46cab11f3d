import { describe, expect, it } from 'vitest'
import {
  dueAt,
  isWalkedWhole,
  loadOf,
  olderPagesBudget,
  type RefreshBudget,
  type RefreshLoad,
  refreshInterval,
} from '../../../src/sync/refresh/due.ts'

const MINUTE = 60_000

const BUDGET: RefreshBudget = { every: 5 * MINUTE, share: 10, limit: 60, load: loadOf([2]) }

function loadOfMany(count: number, cost: number | null): RefreshLoad {
  return loadOf(Array.from({ length: count }, () => cost))
}

describe('how often a list is refreshed', () => {
  it.each([
    { budget: {}, minutes: 5 },
    { budget: { load: loadOfMany(100, 2) }, minutes: 33.3 },
    { budget: { load: loadOfMany(100, null) }, minutes: 33.3 },
    { budget: { load: loadOfMany(100, 2), limit: 300 }, minutes: 6.7 },
    { budget: { load: loadOfMany(15, 2) }, minutes: 5 },
    { budget: { load: loadOfMany(100, 2), limit: null }, minutes: 33.3 },
    { budget: { share: 0 }, minutes: Number.POSITIVE_INFINITY },
  ])('$budget: each $minutes minutes', ({ budget, minutes }) => {
    expect(refreshInterval({ ...BUDGET, ...budget }) / MINUTE).toBeCloseTo(minutes, 1)
  })

  it.each([
    { budget: {}, pages: 5.6 },
    { budget: { load: loadOfMany(10, 2) }, pages: 0.2 },
    { budget: { load: loadOfMany(100, 2) }, pages: 0 },
    { budget: { share: 0 }, pages: 0 },
  ])('leaves to each job $pages older pages a minute: $budget', ({ budget, pages }) => {
    expect(olderPagesBudget({ ...BUDGET, ...budget })).toBeCloseTo(pages)
  })

  it.each([
    { startedAt: 0, now: 4.9 * MINUTE, expected: false },
    { startedAt: 0, now: 5 * MINUTE, expected: true },
    { startedAt: 0, now: 50 * MINUTE, expected: true },
    { startedAt: 3 * MINUTE, now: 0, expected: false },
    { startedAt: 600 * MINUTE, now: 0, expected: true },
  ])('is due after its interval, by a clock that may be set back: $startedAt, $now', (at) => {
    expect(dueAt({ ...at, triedAt: 0 }, 5 * MINUTE, at.now) <= at.now).toBe(at.expected)
  })

  it.each([
    { lastPage: 1, expected: true },
    { lastPage: 4, expected: true },
    { lastPage: 5, expected: false },
  ])('a list of $lastPage pages is walked whole: $expected', ({ lastPage, expected }) => {
    expect(isWalkedWhole({ lastPage })).toBe(expected)
  })
})
