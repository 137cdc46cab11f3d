import { describe, expect, it } from 'vitest'
import {
  afterAnswer,
  afterThrottle,
  allowedPerMinute,
  asOfNow,
  type Budget,
  FRESH,
  type RateRules,
  waitFor,
  withPermit,
} from '../../../src/api/rate/budget.ts'
import type { RateHeaders } from '../../../src/api/rate/headers.ts'
import type { Urgency } from '../../../src/sync/types.ts'
import { announced, DAY, MINUTE, NOTHING, NOW, RULES, SECOND } from '../helpers/rate.ts'

type Window = NonNullable<Budget['window']>

const BEGUN = NOW - 40 * SECOND
const LIMIT = "the server's limit of 60 requests a minute"
const PAUSE = 'the server takes no more requests for now'

/** A budget of 60 requests a minute, with a window of which some are left. */
function budgetWith(window: Partial<Window> | null, others: Partial<Budget> = {}): Budget {
  const whole = { begunAt: BEGUN, endsAt: NOW + 20 * SECOND, left: 30, ...window }
  return { ...FRESH, limit: 60, window: window && whole, ...others }
}

function waitOf(budget: Partial<Budget>, changed: Partial<RateRules> = {}, urgency: Urgency = 'walk') {
  const rules = { ...RULES, ...changed }
  const wait = waitFor(asOfNow({ ...FRESH, ...budget }, rules, NOW), rules, NOW, urgency)
  return wait && [wait.until - NOW, wait.reason]
}

describe('the next request', () => {
  it.each<[string, Partial<Budget>, [number, string] | null]>([
    ['goes at once when the window has ended', budgetWith({ left: 0, endsAt: NOW }), null],
    ['waits for the end of a pause', { closedUntil: NOW + 5000 }, [5000, PAUSE]],
    ['waits for what takes longest', budgetWith({ left: 0 }, { closedUntil: NOW + 5000 }), [20_000, LIMIT]],
    // What a clock wrote that was set back since.
    ['waits for no pause beyond a day', { closedUntil: NOW + DAY + 2 * SECOND }, null],
    [
      'waits for no window of the future',
      budgetWith({ left: 0, begunAt: NOW + MINUTE, endsAt: NOW + DAY }),
      null,
    ],
  ])('%s', (_case, budget, wait) => {
    expect(waitOf(budget)).toEqual(wait)
  })

  // How many seconds ago permits were taken, and how many seconds the next one waits.
  it.each<[string, number, number[], number | null]>([
    ['goes when a place is free', 3, [50, 40, 20, 20], 21],
    ['waits no longer for what a clock wrote that was ahead', 1, [-9000], 61.5],
  ])('under a ceiling of our own %s', (_case, requestsPerMinute, ages, wait) => {
    const waited = waitOf({ sent: ages.map((age) => [NOW - age * SECOND, 1]) }, { requestsPerMinute })

    expect(waited?.[0] ?? null).toBe(wait && wait * SECOND)
  })

  // 6 of 60 are the refreshes' part: one in 10 seconds.
  it.each<[string, Urgency, Partial<Budget>, Partial<RateRules>, number | null]>([
    ['waits until its part is released', 'walk', budgetWith({ left: 1 }), {}, 10_000],
    ['goes where more is released', 'walk', budgetWith({ left: 2 }), {}, null],
    ['goes if it is a refresh', 'refresh', budgetWith({ left: 1 }), {}, null],
    ['goes a minute later', 'walk', budgetWith({ left: 1 }, { refreshedAt: NOW - MINUTE }), {}, null],
    ['waits under a ceiling', 'walk', { sent: [[NOW - 41_000, 59]] }, { requestsPerMinute: 60 }, 10_000],
  ])('after a refresh %s', (_case, urgency, budget, rules, wait) => {
    expect(
      waitOf({ ...budget, refreshedAt: budget.refreshedAt || NOW - 1 }, rules, urgency)?.[0] ?? null,
    ).toBe(wait)
  })
})

it('a pause that is over is forgotten, so that no clock that is set back begins it again', () => {
  const before = asOfNow({ ...FRESH, closedUntil: NOW }, RULES, NOW)

  expect(waitFor(asOfNow(before, RULES, NOW - DAY / 2), RULES, NOW - DAY / 2, 'walk')).toBeNull()
})

describe('a permit', () => {
  it('counts in half seconds under a ceiling of our own, and not without one', () => {
    const rules = { ...RULES, requestsPerMinute: 60 }
    const times = [NOW + 1, NOW + 500, NOW + 501]

    const { sent } = times.reduce((budget, at) => withPermit(budget, rules, at, 'walk'), FRESH)

    expect(sent).toEqual([
      [NOW + 500, 2],
      [NOW + 1000, 1],
    ])
    expect(asOfNow(withPermit(FRESH, RULES, NOW, 'walk'), RULES, NOW)).toEqual(FRESH)
    expect(withPermit(FRESH, RULES, NOW, 'refresh').refreshedAt).toBe(NOW)
  })

  it('begins a window of our share of the limit, or takes one of it', () => {
    const rules = { ...RULES, sharePercent: 50 }
    const first = withPermit(budgetWith(null), rules, NOW, 'walk')

    expect(first.window).toEqual({ begunAt: NOW, endsAt: NOW + 70_000, left: 29 })
    expect(withPermit(first, rules, NOW + 1, 'walk').window).toEqual({ ...first.window, left: 28 })
  })
})

const answerTo = (budget: Budget, announcement: RateHeaders, leftAt = BEGUN, rules = RULES) =>
  afterAnswer(budget, { leftAt, at: NOW, announced: announcement }, rules)

it('a window that is used up for hours is a pause also where the answer to its last request is lost', () => {
  const endsAt = NOW + 360 * MINUTE
  const { closedUntil, window } = withPermit(budgetWith({ left: 1, endsAt }), RULES, NOW, 'walk')

  expect({ closedUntil, window }).toEqual({ closedUntil: endsAt, window: null })
})

describe('an answer', () => {
  it.each<[string, RateHeaders, number, Partial<Window>]>([
    ['says when it ends', announced(60, 50, 12_000), 100, { endsAt: NOW + 13_000, left: 50 }],
    ['is of a share', announced(60, 50), 50, { endsAt: NOW + 61_000, left: 20 }],
  ])('that is the first to announce a limit shows its window: %s', (_case, announcement, percent, window) => {
    const { window: shown } = answerTo(FRESH, announcement, BEGUN, { ...RULES, sharePercent: percent })

    expect(shown).toEqual({ begunAt: BEGUN, ...window })
  })

  it.each<[string, Partial<Window>, RateHeaders, number, Partial<Window>]>([
    ['lowers what is left', {}, announced(60, 20), BEGUN, { left: 20 }],
    ['in another order raises nothing', {}, announced(60, 32), BEGUN, {}],
    ['of an earlier window says nothing', {}, announced(60, 0), BEGUN - 1, {}],
    [
      'that is the first ends it',
      { endsAt: NOW + 70_000 },
      announced(60, 50),
      BEGUN,
      { endsAt: NOW + 61_000 },
    ],
    ['that names its end says so', {}, announced(60, 50, 300_000), BEGUN, { endsAt: NOW + 301_000 }],
  ])('in a window %s', (_case, window, announcement, leftAt, changed) => {
    const before = budgetWith(window)

    expect(answerTo(before, announcement, leftAt).window).toEqual({ ...before.window, ...changed })
  })

  it('after the end of its window says nothing', () => {
    expect(answerTo(budgetWith(null), announced(60, 0))).toEqual(budgetWith(null))
  })

  it.each<[string, RateHeaders, number]>([
    ['leaves nothing for a day', announced(60, 0, DAY), DAY + SECOND],
    ['leaves nothing for a minute', announced(60, 0, MINUTE), 0],
    ['asks for a pause', { ...NOTHING, retryAfterMs: 5000 }, 5000],
  ])('that %s closes the budget for so long', (_case, announcement, wait) => {
    expect(answerTo(budgetWith({}), announcement).closedUntil).toBe(wait === 0 ? 0 : NOW + wait)
  })

  it('never shortens a pause, and ends a row of 429s', () => {
    const closed = { ...FRESH, refused: 3, closedUntil: NOW + 9000 }
    const failed = { ...NOTHING, retryAfterMs: 5000 }

    expect(answerTo(closed, failed)).toEqual({ ...closed, refused: 0 })
  })
})

const throttled = (announcement: Partial<RateHeaders>, budget: Budget) =>
  afterThrottle(budget, { leftAt: BEGUN, at: NOW, announced: { ...NOTHING, ...announcement } }, RULES)

describe('a 429', () => {
  it.each<[string, Partial<RateHeaders>, Budget, number]>([
    ['as long as it says', { retryAfterMs: 5000, resetMs: 9000 }, FRESH, 5000],
    ['until its reset', { resetMs: 10_000 }, FRESH, 10_000],
    ['the fallback, when it says nothing', {}, FRESH, 60_000],
    ['the rest of a longer window, when it says nothing', {}, budgetWith({ endsAt: NOW + 61_000 }), 61_000],
    ['a second, when the second in a row says 0', { retryAfterMs: 0 }, { ...FRESH, refused: 1 }, 1000],
    ['the fallback, when many say 0', { retryAfterMs: 0 }, { ...FRESH, refused: 99 }, 60_000],
  ])('closes the budget for %s, and a second more', (_case, announcement, before, wait) => {
    const { closedUntil, refused, window } = throttled(announcement, before)

    expect({ closedUntil, refused, window }).toEqual({
      closedUntil: NOW + wait + 1000,
      refused: before.refused + 1,
      window: null,
    })
  })

  it('of several in flight together neither lengthens the pause nor shortens it', () => {
    const first = throttled({ retryAfterMs: 5000, limit: 60 }, FRESH)

    expect(throttled({ retryAfterMs: 5000 }, first)).toEqual(first)
    expect(first).toMatchObject({ closedUntil: NOW + 6000, refused: 1, limit: 60 })
  })
})

it.each([
  [{}, null],
  [{ limit: 60, requestsPerMinute: 30 }, 30],
  [{ limit: 60, sharePercent: 50 }, 30],
  // A share of almost nothing still lets one through.
  [{ limit: 60, sharePercent: 1 }, 1],
])('requests a minute that are allowed by %j: %s', (changed, allowed) => {
  const { limit, ...rules } = { requestsPerMinute: null, limit: null, sharePercent: 100, ...changed }

  expect(allowedPerMinute(limit, rules)).toBe(allowed)
})
