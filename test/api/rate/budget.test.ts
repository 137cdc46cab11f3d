import { describe, expect, it } from 'vitest'
import {
  asOfNow,
  type Budget,
  budgetOf,
  budgetText,
  FRESH,
  isHeard,
  onTheirWay,
  unanswered,
  withInFlight,
  withPermit,
} from '../../../src/api/rate/budget.ts'
import { budgetWith, DAY, flightOf, MINUTE, NOW, RULES, SECOND, windowOf } from '../helpers/budgets.ts'

const HOUR = 60 * MINUTE

describe('a clock that was set back', () => {
  it.each<[string, Partial<Budget>, Partial<Budget>]>([
    ['what was sent', { sent: [[NOW + HOUR, 3]] }, { sent: [[NOW + 500, 3]] }],
    [
      'the end of a window',
      { window: windowOf({ endsAt: NOW + HOUR }) },
      { window: windowOf({ endsAt: NOW + 61_000 }) },
    ],
    [
      'requests in flight',
      { inFlight: [flightOf({ at: NOW + HOUR })] },
      { inFlight: [flightOf({ at: NOW })] },
    ],
    ['the last answer', { heardAt: NOW + HOUR }, { heardAt: NOW }],
    [
      'a limit that was learned',
      { learned: { ...FRESH.learned, learnedAt: NOW + HOUR } },
      { learned: { ...FRESH.learned, learnedAt: NOW } },
    ],
    ['a pause beyond a day', { closedUntil: NOW + DAY + 1 }, { closedUntil: 0 }],
  ])('leaves nothing of the future in %s', (_case, written, expected) => {
    expect(asOfNow(budgetWith(written), NOW)).toEqual(budgetWith(expected))
  })

  it.each<[string, Partial<Budget>]>([
    [
      'what was sent',
      {
        sent: [
          [NOW - 5, 1],
          [NOW, 2],
        ],
      },
    ],
    ['a window', { window: windowOf() }],
    ['requests in flight', { inFlight: [flightOf()] }],
  ])('is none that changes %s', (_case, written) => {
    expect(asOfNow(budgetWith(written), NOW)).toEqual(budgetWith(written))
  })
})

describe('an entry older than a minute and a second', () => {
  it('no longer counts', () => {
    const old = budgetWith({
      sent: [
        [NOW - 61_001, 1],
        [NOW - 61_000, 1],
      ],
      inFlight: [flightOf({ at: NOW - 61_001 }), flightOf({ by: 'a third', at: NOW - 61_000 })],
    })

    const { sent, inFlight } = asOfNow(old, NOW)

    expect(sent).toEqual([[NOW - 61_000, 1]])
    expect(inFlight.map(({ by }) => by)).toEqual(['a third'])
  })

  it('is kept if it is the last, since a small ceiling counts it for longer', () => {
    expect(asOfNow(budgetWith({ sent: [[NOW - HOUR, 1]] }), NOW).sent).toEqual([[NOW - HOUR, 1]])
  })
})

describe('a permit', () => {
  const RATED = { ...RULES, requestsPerMinute: 10 }

  it('is one more request in flight', () => {
    const before = budgetWith({ inFlight: [flightOf({ by: 'one', count: 2 }), flightOf()] })

    expect(withPermit(before, 'one', RULES, NOW).inFlight).toEqual([
      flightOf(),
      { by: 'one', count: 3, at: NOW },
    ])
    expect(withPermit(before, 'another one', RULES, NOW).inFlight).toHaveLength(3)
  })

  it('counts as sent in its half second, if there is a ceiling of our own', () => {
    const times = [NOW - 100, NOW, NOW + 1, NOW + 500, NOW + 501]

    const permitted = (rules: typeof RULES) =>
      times.reduce((budget, at) => withPermit(budget, 'one', rules, at), budgetWith({ sent: [[NOW, 1]] }))

    expect(permitted(RATED).sent).toEqual([
      [NOW, 3],
      [NOW + 500, 2],
      [NOW + 1000, 1],
    ])
    expect(permitted(RULES).sent).toEqual([[NOW, 1]])
  })

  it('keeps the others after the clock was set back', () => {
    const ahead = budgetWith({
      sent: [
        [NOW + HOUR, 3],
        [NOW + 2 * HOUR, 2],
      ],
    })

    const after = withPermit(asOfNow(ahead, NOW), 'one', RATED, NOW)

    expect(after.sent).toEqual([
      [NOW + 500, 3],
      [NOW + 500, 3],
    ])
  })
})

describe('requests of several processes', () => {
  const inFlight = [
    flightOf({ by: 'one', count: 4 }),
    flightOf({ by: 'another', count: 2, at: NOW - 20_000 }),
    flightOf({ by: 'a killed one', count: 5, at: NOW - 20_001 }),
  ]

  it('are unanswered while no response was seen', () => {
    expect(unanswered({ inFlight })).toBe(11)
  })

  it('are no longer on their way once a process has written nothing for so long', () => {
    expect(onTheirWay({ inFlight }, NOW)).toBe(6)
  })

  it('disappear when they are answered', () => {
    const before = budgetWith({ inFlight })

    expect(withInFlight(before, { by: 'one', count: 0, at: NOW }).inFlight).toEqual(inFlight.slice(1))
  })
})

describe('a server that was heard', () => {
  const over = windowOf({ endsAt: NOW - 5000 })

  it.each<[string, Partial<Budget>, boolean]>([
    ['never is none', { heardAt: 0 }, false],
    ['a minute ago is none', { heardAt: NOW - MINUTE }, false],
    ['less than a minute ago is one', { heardAt: NOW - MINUTE + 1 }, true],
    ['before a 429 is none', { heardAt: NOW - 5, throttledAt: NOW - 5 }, false],
    ['after a 429 is one', { heardAt: NOW - 4, throttledAt: NOW - 5 }, true],
    [
      'before a given-up process is none',
      { heardAt: NOW - 4, inFlight: [flightOf({ at: NOW - 20_003 })] },
      false,
    ],
    ['after a given-up one is one', { heardAt: NOW - 1, inFlight: [flightOf({ at: NOW - 20_003 })] }, true],
    ['while all processes live is', { heardAt: NOW - 4, inFlight: [flightOf({ at: NOW - 19_999 })] }, true],
    [
      'in the last window is none beside others',
      { heardAt: NOW - 5000, window: { ...over, ours: 20 } },
      false,
    ],
    ['in this window is one', { heardAt: NOW - 4999, window: { ...over, ours: 20 } }, true],
    ['in the last window is one, where all of it was ours', { heardAt: NOW - 5000, window: over }, true],
    ['in a window that is not over is one', { heardAt: NOW - 5000, window: windowOf({ ours: 20 }) }, true],
  ])('%s', (_case, written, expected) => {
    expect(isHeard({ ...FRESH, ...written }, NOW)).toBe(expected)
  })
})

describe('a stored budget', () => {
  it('is the budget without its pause, which is stored beside it', () => {
    const budget = budgetWith({
      sent: [[NOW, 1]],
      inFlight: [flightOf()],
      window: windowOf(),
      closedUntil: NOW + 1,
    })

    expect(budgetOf(budgetText(budget), 7)).toEqual({ ...budget, closedUntil: 7 })
  })

  it('may lack what an earlier version did not write', () => {
    expect(budgetOf('{"throttled":3}', 0)).toEqual({ ...FRESH, throttled: 3 })
  })

  it('is a fresh one at first', () => {
    expect(budgetOf(null, 0)).toEqual(FRESH)
  })

  it('keeps only the pause of a version that took permits in blocks', () => {
    const blocks = [{ by: 'one', count: 4, until: NOW + SECOND, inFlight: 2 }]
    const text = JSON.stringify({ sent: [[NOW - SECOND, 2]], blocks, window: windowOf(), heardAt: NOW - 1 })

    expect(budgetOf(text, NOW + HOUR)).toEqual({ ...FRESH, closedUntil: NOW + HOUR })
  })
})
