import { expect, it } from 'vitest'
import { type Pace, timeLeft } from '../../src/report/time-left.ts'

const MINUTE = 60_000
const FRESH: Pace = {
  budget: 'x',
  pages: 0,
  runMs: 0,
  waitedMs: 0,
  waitMs: 0,
  pagesLeft: 100,
  perMinute: null,
}
const FIRST = { pages: 1, runMs: 1000, perMinute: 60 }
const LATER = { pages: 90, runMs: 3 * MINUTE, waitedMs: 2.5 * MINUTE, perMinute: 30 }

it.each<[string, Partial<Pace>, others: Partial<Pace>[], number | null]>([
  ['is not known before the length of the list is', { ...FIRST, pagesLeft: null }, [], null],
  ['is none once all is read', { ...LATER, pagesLeft: 0 }, [], null],
  ['is not known from two answers without a limit', { pages: 2, runMs: 9000 }, [], null],
  ['is not known before the other lists of the limit answer', FIRST, [{ pages: 0 }], null],
  ['goes by the speed of the server, waits apart', { pages: 4, runMs: 9000, waitedMs: 7000 }, [], 50_000],
  ['goes by the pace of the limit from the first answer on', FIRST, [], 100_000],
  [
    'counts what other lists of the limit send meanwhile',
    LATER,
    [
      { pages: 90, pagesLeft: 400 },
      { pages: 9, pagesLeft: 20 },
      { pages: 9, pagesLeft: null },
      { budget: 'y', pages: 0 },
    ],
    (320 / 30) * MINUTE,
  ],
  ['is at least the wait', { ...LATER, waitMs: 10 * MINUTE }, [], 10 * MINUTE],
])('the time that a walk still takes %s', (_, changed, others, ms) => {
  const pace = { ...FRESH, ...changed }

  const left = timeLeft(pace, [pace, ...others.map((other) => ({ ...FRESH, ...other }))])

  expect(left).toBe(ms === null ? null : Math.round(ms))
})

it('the time left is right within a minute from the first answers on: 800 pages at 30 a minute', () => {
  for (let seconds = 1; seconds < 1500; seconds += 7) {
    // At once what the first minute allows, then 30 at the begin of each minute.
    const pages = Math.min(30 * (Math.floor(seconds / 60) + 1), 800)
    const ms = seconds * 1000
    const pace = { ...FRESH, pages, runMs: ms, waitedMs: ms, pagesLeft: 800 - pages, perMinute: 30 }
    const truth = (26 * 60 - seconds) * 1000
    expect(Math.abs((timeLeft(pace, [pace]) ?? 0) - truth), `after ${seconds} s`).toBeLessThanOrEqual(MINUTE)
  }
})
