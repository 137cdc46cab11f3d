import { expect, it } from 'vitest'
import { type Pace, timeLeft } from '../../src/report/time-left.ts'

const PACE: Pace = { pages: 30, runMs: 60_000, waitMs: 0, pagesLeft: 100 }

it.each<[string, Partial<Pace>, number | null]>([
  ['goes by the speed so far', {}, 200_000],
  ['is at least the wait', { waitMs: 600_000 }, 600_000],
  ['is not known in the first minute', { runMs: 59_999 }, null],
  ['is not known before the first answer', { pages: 0 }, null],
  ['is not known before the length of the list is', { pagesLeft: null }, null],
  ['is none once all is read', { pagesLeft: 0 }, null],
])('the time that a walk still takes %s', (_, changed, ms) => {
  expect(timeLeft({ ...PACE, ...changed })).toBe(ms)
})
