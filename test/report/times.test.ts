import { describe, expect, it } from 'vitest'
import { type Pace, timeLeft } from '../../src/report/times.ts'

const MINUTE = 60_000
const PACE: Pace = {
  budget: 'x',
  pages: 0,
  runMs: 0,
  waitedMs: 0,
  waitMs: 0,
  pagesLeft: 100,
  perMinute: null,
}

type Others = { others?: Partial<Pace>[] }

describe('the time that a list still takes', () => {
  it.each<[string, Partial<Pace> & Others, number | null]>([
    ['is not known before its length is', { pagesLeft: null, perMinute: 60, pages: 5 }, null],
    ['is not known from one or two answers of a server without a limit', { pages: 2, runMs: 9000 }, null],
    [
      'is not known before the first answer of another list of the limit',
      { pages: 5, perMinute: 60, others: [{ pages: 0, pagesLeft: null }] },
      null,
    ],
    ['goes by the speed of the server', { pages: 4, runMs: 2000 }, 50_000],
    ['counts no waits as the speed of the server', { pages: 4, runMs: 62_000, waitedMs: 60_000 }, 50_000],
    [
      'is not known from one answer where the first minute still allows all',
      { pages: 1, perMinute: 120 },
      null,
    ],
    // 1 and 59 in the first minute, 41 in the second.
    ['goes by the limit: a fresh minute', { pages: 1, runMs: 1000, perMinute: 60 }, 59_000],
    [
      'goes by the limit: then its pace',
      { pages: 1, runMs: 1000, perMinute: 60, pagesLeft: 1000 },
      59_000 + (941 / 60 - 1) * MINUTE,
    ],
    [
      'goes by the pace of the limit, later',
      { pages: 90, runMs: 3 * MINUTE, waitedMs: 2.5 * MINUTE, perMinute: 30 },
      (100 / 30) * MINUTE,
    ],
    [
      'counts what the other lists of the limit send meanwhile',
      {
        pages: 90,
        runMs: 3 * MINUTE,
        waitedMs: 2.5 * MINUTE,
        perMinute: 30,
        others: [
          { pages: 90, pagesLeft: 400 },
          { pages: 9, pagesLeft: 20 },
        ],
      },
      (220 / 30) * MINUTE,
    ],
    [
      'takes a list that does not say its length for as long',
      {
        pages: 90,
        runMs: 3 * MINUTE,
        waitedMs: 2.9 * MINUTE,
        perMinute: 50,
        others: [{ pages: 90, pagesLeft: null }],
      },
      4 * MINUTE,
    ],
    [
      'is at least the wait',
      { pages: 90, runMs: 3 * MINUTE, waitMs: 10 * MINUTE, perMinute: 1000 },
      10 * MINUTE,
    ],
    [
      'counts no list of another limit',
      { pages: 4, runMs: 2000, others: [{ budget: 'y', pages: 0 }] },
      50_000,
    ],
  ])('%s', (_, { others = [], ...changed }, ms) => {
    const pace = { ...PACE, ...changed }
    const all = [pace, ...others.map((other) => ({ ...PACE, ...other }))]

    expect(timeLeft(pace, all)).toBe(ms === null ? null : Math.round(ms))
  })

  it('is right within a minute from the first answers on: 800 pages at 30 a minute', () => {
    for (let seconds = 1; seconds < 1500; seconds += 7) {
      // At once what the first minute allows, then 30 at the begin of each minute.
      const sent = Math.min(30 * (Math.floor(seconds / 60) + 1), 800)
      const truth = (26 * 60 - seconds) * 1000
      const ms = seconds * 1000
      const pace = { ...PACE, pages: sent, runMs: ms, waitedMs: ms, pagesLeft: 800 - sent, perMinute: 30 }
      const told = timeLeft(pace, [pace])
      expect(Math.abs((told ?? 0) - truth), `after ${seconds} s`).toBeLessThanOrEqual(MINUTE)
    }
  })
})
