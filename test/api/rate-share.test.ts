import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Announcement } from '../../src/api/rate-headers.ts'
import {
  afterAnswer,
  afterSend,
  afterThrottle,
  asOfNow,
  currentWindow,
  FRESH,
  nextSend,
  type RateRules,
  type RateState,
  type Window,
} from '../../src/api/rate-window.ts'
import { createFixedWindow } from './helpers/fixed-window.ts'
import { createRandom, type Log, mostInAMinute, simulate } from './helpers/traffic.ts'

const NOW = Date.UTC(2026, 10, 20, 8, 30)
const SECOND = 1000
const MINUTE = 60 * SECOND
const DAY = 24 * 60 * MINUTE

const RULES: RateRules = { requestsPerMinute: null, sharePercent: 100, fallbackWaitMs: MINUTE }
const NOTHING: Announcement = { limit: null, remaining: null, resetMs: null, retryAfterMs: null }

function told(limit: number, remaining: number, resetMs: number | null = null): Announcement {
  return { ...NOTHING, limit, remaining, resetMs }
}

function windowOf(changed: Partial<Window> = {}): Window {
  return { limit: 60, remaining: 30, ours: 30, endsAt: NOW + 20 * SECOND, ...changed }
}

/** Milliseconds until the next request may go. */
function waitOf(state: Partial<RateState>, rules: Partial<RateRules> = {}): number {
  return nextSend({ ...FRESH, heard: true, ...state }, { ...RULES, ...rules }, NOW).at - NOW
}

/** What one answer makes of a window, when its request left in that window. */
function windowAfter(
  window: Window | null,
  announcement: Announcement,
  changed: Partial<RateState> = {},
): Window | null {
  const state = { ...FRESH, inFlight: 1, window, ...changed }
  return afterAnswer(state, currentWindow(state, NOW), announcement, NOW).window
}

describe('the next request', () => {
  it.each<[string, Partial<RateState>, number]>([
    ['goes at once when nothing is known', {}, 0],
    ['goes at once while the window has some left', { window: windowOf({ remaining: 1 }) }, 0],
    ['waits for the end of a window that has none left', { window: windowOf({ remaining: 0 }) }, 20_000],
    ['waits when what is left is on its way', { window: windowOf({ remaining: 3 }), inFlight: 3 }, 20_000],
    ['goes when one more is left than is on its way', { window: windowOf({ remaining: 3 }), inFlight: 2 }, 0],
    ['goes once the window has ended', { window: windowOf({ remaining: 0, endsAt: NOW }) }, 0],
    [
      'waits for an answer when a whole new window is on its way',
      { window: windowOf({ limit: 4, remaining: 0, endsAt: NOW }), inFlight: 4 },
      Number.POSITIVE_INFINITY,
    ],
    ['waits for the end of a window of 0', { window: windowOf({ limit: 0, remaining: 0, ours: 0 }) }, 20_000],
    ['goes after a window of 0', { window: windowOf({ limit: 0, remaining: 0, ours: 0, endsAt: NOW }) }, 0],
    ['goes when it is the first', { heard: false }, 0],
    ['waits for the first answer', { heard: false, inFlight: 1 }, Number.POSITIVE_INFINITY],
    ['waits for the end of a pause', { closedUntil: NOW + 5000 }, 5000],
    ['goes after a pause', { closedUntil: NOW }, 0],
    ['waits for the later of two', { closedUntil: NOW + 5000, window: windowOf({ remaining: 0 }) }, 20_000],
  ])('%s', (_case, state, wait) => {
    expect(waitOf(state)).toBe(wait)
  })

  it.each<[string, number, number, number[], number]>([
    ['goes while fewer were sent', 3, 0, [0, -1000], 0],
    ['waits for the oldest to be older than a minute', 3, 0, [-50_000, -20_000, 0], 10_001],
    ['goes when the oldest is older than a minute', 3, 0, [-60_001, -20_000, 0], 0],
    ['waits when the oldest is exactly a minute old', 3, 0, [-60_000, -20_000, 0], 1],
    ['counts only the last ones', 2, 0, [-50_000, -20_000, 0], 40_001],
  ])('under a ceiling of our own %s', (_case, requestsPerMinute, inFlight, ages, wait) => {
    const sent = ages.map((age) => NOW + age)

    expect(waitOf({ sent, inFlight }, { requestsPerMinute })).toBe(wait)
  })

  it.each<[string, number, Partial<Window>, number, number]>([
    ['has its share left', 50, { remaining: 31, ours: 29 }, 0, 0],
    ['has used its share', 50, { remaining: 30, ours: 30 }, 0, 20_000],
    ['has the rest of its share on its way', 50, { remaining: 33, ours: 27 }, 3, 20_000],
    ['keeps its share when others have used theirs', 50, { remaining: 29, ours: 1 }, 0, 0],
    ['gets nothing of a window that others have used up', 50, { remaining: 0, ours: 1 }, 0, 20_000],
    ['leaves what others have not used yet', 50, { remaining: 20, ours: 30 }, 0, 20_000],
    ['has a share of one at the least', 1, { remaining: 60, ours: 0 }, 0, 0],
    ['has no more than one then', 1, { remaining: 59, ours: 1 }, 0, 20_000],
    ['has all', 100, { remaining: 1, ours: 10 }, 0, 0],
  ])('with a share %s', (_case, sharePercent, window, inFlight, wait) => {
    expect(waitOf({ window: windowOf(window), inFlight }, { sharePercent })).toBe(wait)
  })

  it.each<[string, Partial<RateState>, Partial<RateRules>, string]>([
    ['nothing', {}, {}, 'nothing'],
    ['a pause', { closedUntil: NOW + 1 }, {}, 'the server asked for a pause'],
    ['the first answer', { inFlight: 1 }, {}, 'the first answer of the server'],
    ['our own ceiling', { sent: [NOW] }, { requestsPerMinute: 1 }, 'our own limit of 1 requests a minute'],
    [
      'the limit of the server',
      { window: windowOf({ remaining: 0 }) },
      {},
      "the server's limit of 60 requests a minute",
    ],
  ])('says that it waits for %s', (_case, state, rules, reason) => {
    expect(nextSend({ ...FRESH, ...state }, { ...RULES, ...rules }, NOW).reason).toBe(reason)
  })
})

describe('a request that leaves', () => {
  it('is in flight, and is kept in mind for a minute only where a ceiling asks for it', () => {
    const sent = [NOW - MINUTE - 1, NOW - MINUTE, NOW]

    expect(afterSend({ ...FRESH, sent }, { ...RULES, requestsPerMinute: 5 }, NOW)).toEqual({
      ...FRESH,
      inFlight: 1,
      sent: [NOW - MINUTE, NOW, NOW],
    })
    expect(afterSend({ ...FRESH, sent }, RULES, NOW)).toEqual({ ...FRESH, inFlight: 1, sent: [] })
  })
})

describe('an answer', () => {
  it.each<[string, Announcement, Partial<Window>]>([
    ['a minute and a moment from now', told(60, 59), { remaining: 59, ours: 1, endsAt: NOW + 60_250 }],
    [
      'when the server says, and a second',
      told(60, 40, 12_000),
      { remaining: 40, ours: 20, endsAt: NOW + 13_000 },
    ],
    ['after a minute at the latest', told(60, 59, 3_600_000), { endsAt: NOW + 61_000 }],
  ])('begins the first window, which ends %s', (_case, announcement, expected) => {
    expect(windowAfter(null, announcement)).toMatchObject({ limit: 60, ...expected })
  })

  it.each<[string, Window, Announcement, Partial<RateState>, Partial<Window> | null]>([
    ['counts down', windowOf(), told(60, 29), {}, { remaining: 29, ours: 31, endsAt: NOW + 20_000 }],
    [
      'counts down with others',
      windowOf(),
      told(60, 20),
      {},
      { remaining: 20, ours: 31, endsAt: NOW + 20_000 },
    ],
    [
      'begins a window by a jump',
      windowOf(),
      told(60, 50),
      {},
      { remaining: 50, ours: 10, endsAt: NOW + 60_250 },
    ],
    [
      'begins a window by its first count',
      windowOf({ remaining: 59, ours: 1 }),
      told(60, 59),
      { inFlight: 8 },
      { remaining: 59, ours: 1, endsAt: NOW + 60_250 },
    ],
    [
      'is no jump when so many are in flight',
      windowOf(),
      told(60, 34),
      { inFlight: 4 },
      { remaining: 30, ours: 31, endsAt: NOW + 20_000 },
    ],
    [
      'begins a window after the last has ended',
      windowOf({ endsAt: NOW }),
      told(60, 10),
      {},
      { remaining: 10, ours: 50, endsAt: NOW + 60_250 },
    ],
    ['that tells nothing counts as one of ours', windowOf(), NOTHING, {}, { remaining: 30, ours: 31 }],
    [
      'that tells half counts as one of ours',
      windowOf(),
      { ...NOTHING, remaining: 5 },
      {},
      { remaining: 30, ours: 31 },
    ],
    [
      'that tells a limit of 0 counts as one of ours',
      windowOf(),
      told(0, 0),
      {},
      { remaining: 30, ours: 31 },
    ],
    [
      'that comes while the gate is closed tells nothing',
      windowOf(),
      told(60, 3),
      { closedUntil: NOW + 1 },
      windowOf(),
    ],
  ])('%s', (_case, window, announcement, state, expected) => {
    expect(windowAfter(window, announcement, state)).toMatchObject(expected ?? {})
  })

  it.each<[string, Window | null, Announcement, Partial<Window>]>([
    ['counts when its request left after the last window', null, told(60, 20), { remaining: 20, ours: 31 }],
    [
      'counts when it has jumped as well',
      windowOf({ remaining: 5, endsAt: NOW - 1 }),
      told(60, 28),
      { remaining: 28, ours: 31 },
    ],
    [
      'says nothing when it may belong to the window before',
      windowOf({ remaining: 25, endsAt: NOW - 1 }),
      told(60, 24),
      { remaining: 30, ours: 30 },
    ],
  ])('that comes in a later window %s', (_case, leftIn, announcement, expected) => {
    const state = { ...FRESH, inFlight: 1, window: windowOf() }

    expect(afterAnswer(state, leftIn, announcement, NOW).window).toEqual({ ...windowOf(), ...expected })
  })

  it('with a limit of 0 announces nothing', () => {
    const state = { ...FRESH, inFlight: 1, throttled: 2 }

    const after = afterAnswer(state, null, told(0, 0, DAY), NOW)

    expect(after).toEqual({ ...FRESH, heard: true })
    expect(nextSend(after, RULES, NOW).at).toBe(NOW)
  })

  it.each<[string, Announcement, number]>([
    ['an hour', told(60, 0, 60 * MINUTE), 60 * MINUTE + SECOND],
    ['a day and no longer', told(60, 0, DAY), DAY],
    ['a moment more than a minute', told(60, 0, MINUTE + 1), MINUTE + 1 + SECOND],
    ['no more than its window, when that ends within a minute', told(60, 0, MINUTE), MINUTE + SECOND],
    ['no time, while something is left', told(60, 1, 60 * MINUTE), 0],
  ])('that leaves nothing until its reset is waited out for %s', (_case, announcement, wait) => {
    const after = afterAnswer({ ...FRESH, inFlight: 1 }, null, announcement, NOW)

    expect(nextSend(after, RULES, NOW).at - NOW).toBe(wait)
  })

  it('that leaves nothing for a minute is the matter of a window, and for longer that of a pause', () => {
    const state = { ...FRESH, inFlight: 1 }

    expect(afterAnswer(state, null, told(60, 0, MINUTE), NOW).closedUntil).toBe(0)
    expect(afterAnswer(state, null, told(60, 0, 5 * MINUTE), NOW).closedUntil).toBe(NOW + 5 * MINUTE + SECOND)
  })

  it('ends a row of 429s, and none at all does not', () => {
    const state = { ...FRESH, inFlight: 2, throttled: 3 }

    expect(afterAnswer(state, null, NOTHING, NOW)).toMatchObject({ inFlight: 1, throttled: 0 })
    expect(afterAnswer(state, null, null, NOW)).toMatchObject({ inFlight: 1, throttled: 3 })
  })

  it.each([NOTHING, null])('lets the others go, unless it left before a pause: %o', (announcement) => {
    const state = { ...FRESH, inFlight: 1 }

    expect(afterAnswer(state, null, announcement, NOW).heard).toBe(true)
    expect(afterAnswer({ ...state, closedUntil: NOW + 1 }, null, announcement, NOW).heard).toBe(false)
  })
})

describe('a 429', () => {
  it.each<[string, Partial<Announcement>, Partial<RateState>, number]>([
    ['what it says', { retryAfterMs: 30_000 }, {}, 30_000],
    ['what it says before its reset', { retryAfterMs: 30_000, resetMs: 10_000 }, {}, 30_000],
    ['its reset', { resetMs: 10_000 }, {}, 10_000],
    ['nothing, when it says 0', { retryAfterMs: 0 }, {}, 0],
    ['the fallback, when it says nothing', {}, {}, 60_000],
    ['the fallback, when the window ends before', {}, { window: windowOf() }, 60_000],
    ['2 seconds, when the second in a row says 0', { retryAfterMs: 0 }, { throttled: 1 }, 2000],
    ['4 seconds, when the third in a row says 0', { retryAfterMs: 0 }, { throttled: 2 }, 4000],
    ['the fallback, when the hundredth in a row says 0', { retryAfterMs: 0 }, { throttled: 99 }, 60_000],
    ['what it says, when that is longer', { retryAfterMs: 90_000 }, { throttled: 9 }, 90_000],
  ])('closes the gate for %s, and a second with jitter', (_case, announcement, changed, wait) => {
    const state = { ...FRESH, inFlight: 1, heard: true, ...changed }

    const after = afterThrottle(state, { ...NOTHING, ...announcement }, RULES, NOW, 345)

    expect(after).toMatchObject({ inFlight: 0, window: null, heard: false, closedUntil: NOW + wait + 1345 })
    expect(after.throttled).toBe(state.throttled + 1)
  })

  it('closes the gate for a day at most', () => {
    const after = afterThrottle({ ...FRESH, inFlight: 1 }, { ...NOTHING, retryAfterMs: DAY }, RULES, NOW, 999)

    expect(after.closedUntil).toBe(NOW + DAY)
  })

  it('waits for the end of a window that is later than the fallback', () => {
    const state = { ...FRESH, inFlight: 1, window: windowOf({ endsAt: NOW + 40_000 }) }

    const after = afterThrottle(state, NOTHING, { ...RULES, fallbackWaitMs: 5000 }, NOW, 0)

    expect(after.closedUntil).toBe(NOW + 41_000)
  })

  it('of several that were in flight together grows no pause, and shortens none', () => {
    const first = afterThrottle(
      { ...FRESH, inFlight: 8 },
      { ...NOTHING, retryAfterMs: 5000 },
      RULES,
      NOW,
      900,
    )
    const rest = Array.from({ length: 7 }).reduce<RateState>(
      (state) => afterThrottle(state, { ...NOTHING, retryAfterMs: 5000 }, RULES, NOW, 0),
      first,
    )

    expect(rest).toEqual({ ...first, inFlight: 0 })
    expect(rest).toMatchObject({ closedUntil: NOW + 6900, throttled: 1 })
  })
})

describe('a clock that went back', () => {
  const HOUR = 60 * MINUTE

  it.each<[string, Partial<RateState>, Partial<RateState>]>([
    ['what was sent', { sent: [NOW - 5, NOW, NOW + HOUR] }, { sent: [NOW - 5, NOW, NOW] }],
    [
      'the end of a window',
      { window: windowOf({ endsAt: NOW + HOUR }) },
      { window: windowOf({ endsAt: NOW + 61_000 }) },
    ],
    ['a pause beyond a day', { closedUntil: NOW + DAY + 1 }, { closedUntil: 0 }],
  ])('leaves nothing of the future in %s', (_case, written, expected) => {
    expect(asOfNow({ ...FRESH, ...written }, NOW)).toEqual({ ...FRESH, ...expected })
  })

  it.each<[string, Partial<RateState>]>([
    ['what was sent', { sent: [NOW - HOUR, NOW] }],
    ['a window', { window: windowOf({ endsAt: NOW + 61_000 }) }],
    ['a window that has ended', { window: windowOf({ endsAt: NOW - 1 }) }],
    ['a pause of a day', { closedUntil: NOW + DAY }],
  ])('is none that changes %s', (_case, written) => {
    expect(asOfNow({ ...FRESH, ...written }, NOW)).toEqual({ ...FRESH, ...written })
  })
})

describe('our own ceiling', () => {
  it('is held to in any 60 seconds, whatever comes and however long it takes', () => {
    const traffic = fc.record({
      requestsPerMinute: fc.integer({ min: 1, max: 40 }),
      senders: fc.integer({ min: 1, max: 20 }),
      latency: fc.tuple(fc.integer({ min: 0, max: 500 }), fc.integer({ min: 500, max: 40_000 })),
      limit: fc.integer({ min: 1, max: 80 }),
      seed: fc.integer(),
    })

    fc.assert(
      fc.property(traffic, ({ requestsPerMinute, senders, latency, limit, seed }) => {
        const rules = { ...RULES, requestsPerMinute }
        const server = createFixedWindow(limit, { whole: false })

        const { sent } = simulate({
          rules,
          senders,
          duration: 6 * MINUTE,
          random: createRandom(seed),
          latency,
          server,
        })

        expect(mostInAMinute(sent)).toBeLessThanOrEqual(requestsPerMinute)
      }),
    )
  })

  it('is used whole', () => {
    const rules = { ...RULES, requestsPerMinute: 30 }
    const server = createFixedWindow(1000, { whole: false })

    const { sent } = simulate({
      rules,
      senders: 4,
      duration: 30 * MINUTE,
      random: createRandom(1),
      latency: [50, 400],
      server,
    })

    expect(sent.length).toBe(30 * 30)
    expect(mostInAMinute(sent)).toBe(30)
  })
})

interface Case {
  limit: number
  senders: number
  /** Milliseconds on the way, each way. */
  latency: [number, number]
  sharePercent?: number
}

const HALF_HOUR = 30 * MINUTE

function halfHour(
  { limit, senders, latency, sharePercent = 100 }: Case,
  whole: boolean,
  seed: number,
  others: number[] = [],
): Log {
  const rules = { ...RULES, sharePercent }
  const server = createFixedWindow(limit, { whole })
  return simulate({
    rules,
    senders,
    duration: HALF_HOUR,
    random: createRandom(seed),
    latency,
    server,
    others,
  })
}

const CASES: Case[] = [
  { limit: 60, senders: 1, latency: [20, 150] },
  { limit: 300, senders: 1, latency: [20, 75] },
  { limit: 20, senders: 1, latency: [200, 1000] },
  { limit: 20, senders: 8, latency: [20, 150] },
  { limit: 60, senders: 8, latency: [20, 3000] },
  { limit: 300, senders: 8, latency: [20, 150] },
  { limit: 300, senders: 8, latency: [200, 1000] },
  { limit: 5, senders: 4, latency: [20, 150] },
]

describe.each([
  ['to the millisecond', false],
  ['in whole seconds', true],
])('half an hour against a fixed window that is counted %s', (_case, whole) => {
  it.each(CASES)(
    'uses 97 % of $limit requests a minute with $senders senders at $latency ms, and provokes at most one 429',
    (traffic) => {
      for (const seed of [1, 2, 3]) {
        const { served, throttled } = halfHour(traffic, whole, seed)

        expect(served.length / (traffic.limit * 30)).toBeGreaterThanOrEqual(0.97)
        expect(throttled).toBeLessThanOrEqual(1)
      }
    },
  )

  it.each(CASES.map((traffic) => ({ ...traffic, sharePercent: 50 })))(
    'takes no more than half of $limit requests a window with $senders senders at $latency ms, and 97 % of that',
    (traffic) => {
      const share = Math.floor(traffic.limit / 2)
      for (const seed of [1, 2, 3]) {
        const { served, throttled } = halfHour(traffic, whole, seed)

        expect(mostInAWindow(served, whole)).toBeLessThanOrEqual(Math.max(share, 1))
        expect(served.length / (share * 30)).toBeGreaterThanOrEqual(0.97)
        expect(throttled).toBe(0)
      }
    },
  )
})

/** The most requests in one window of the server, which begins with the first that comes after the last has ended. */
function mostInAWindow(served: number[], whole: boolean): number {
  let end = 0
  const counts: number[] = []
  for (const time of served.toSorted((one, other) => one - other)) {
    // The simulation begins a quarter of a second after a whole one.
    if (time >= end) {
      end = (whole ? Math.floor((time + 250) / 1000) * 1000 - 250 : time) + MINUTE
      counts.push(0)
    }
    counts.push((counts.pop() ?? 0) + 1)
  }
  return Math.max(0, ...counts)
}

describe('half an hour beside others on the same budget', () => {
  /** Half of 60 a minute, evenly over the minute. */
  const others = Array.from({ length: 30 * 30 }, (_, index) => index * 2000 + 700)

  it('leaves them their half, and uses nine tenths of its own', () => {
    const { served, throttled } = halfHour(
      { limit: 60, senders: 8, latency: [20, 150], sharePercent: 50 },
      false,
      1,
      others,
    )

    expect(served.length).toBeGreaterThanOrEqual(30 * 30 * 0.9)
    expect(served.length).toBeLessThanOrEqual(30 * 31)
    expect(throttled).toBe(0)
  })

  it('uses what they leave when all is ours', () => {
    const { served, throttled } = halfHour({ limit: 60, senders: 1, latency: [20, 150] }, false, 1, others)

    expect(served.length).toBeGreaterThanOrEqual(30 * 30)
    expect(throttled).toBeLessThanOrEqual(30)
  })
})

describe('a budget that another run has begun to use', () => {
  it('costs one 429, and is used whole from then on', () => {
    const server = createFixedWindow(60, { whole: false })
    const others = Array.from({ length: 60 }, () => 0)

    const { served, throttled } = simulate({
      rules: RULES,
      senders: 8,
      duration: HALF_HOUR,
      random: createRandom(1),
      latency: [20, 150],
      server,
      others,
    })

    expect(throttled).toBe(1)
    expect(served.length).toBeGreaterThanOrEqual(29 * 60 * 0.97)
  })
})
