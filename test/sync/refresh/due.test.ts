import { expect, it } from 'vitest'
import { afterWalked, type RefreshPace, takeOwed } from '../../../src/sync/refresh/due.ts'
import { afterFullWalk, knownRates, type RefreshState } from '../../../src/sync/refresh/state.ts'

const MINUTE = 60_000
const DAY = 1440 * MINUTE
const RATE = 0.1
const PRICE = 500
const PACE: RefreshPace = {
  every: 5 * MINUTE,
  turn: 5 * MINUTE,
  walkEvery: DAY,
  newest: 'first',
  alarm: false,
}

/** A list of 100 pages, which a walk read at the time 0. */
const WALKED: RefreshState = afterFullWalk(null, {
  scope: '',
  startedAt: 0,
  endedAt: 100 * MINUTE,
  lastPage: 100,
  totals: { first: 2500, last: 2500 },
  isSteady: true,
  rowsAdded: { first: 0, last: 0 },
})
const known = knownRates(WALKED, 'first', 0)
const STATE: RefreshState = {
  ...WALKED,
  rates: { ...known, bands: known.bands.map((band) => ({ ...band, rate: RATE })) },
}

/** The rate of the deepest band once the first of its pages that is owed was read, and nothing had changed on it. */
function rateAfter(state: RefreshState, now: number): number {
  let left = state
  for (;;) {
    const owed = takeOwed(left, PACE, PRICE, now)
    const { number, after } = owed.page ?? expect.fail('nothing is owed')
    left = after({ added: 0, changed: 0 })
    if (number > 63) return left.rates?.bands.at(-1)?.rate ?? 0
  }
}

it.each([
  { walked: [], expected: 0.7 },
  { walked: [1, 2], expected: 0.7 },
  { walked: [98, 99, 100], expected: 1 },
  // It looks back at a page.
  { walked: [99, 100, 36], expected: 1 },
  // The next one has begun.
  { walked: [99, 100, 1], expected: 0.7 },
])('a page that a walk has just read says little of its rate: after $walked, $expected of it', (row) => {
  const now = DAY + 100 * MINUTE
  const walked = row.walked.reduce(
    (state, number) => afterWalked(state, PACE, PRICE, { number, found: 0 }, now),
    STATE,
  )

  expect(rateAfter(walked, now) / RATE).toBeCloseTo(row.expected, 1)
})
