import { describe, expect, it } from 'vitest'
import {
  afterReport,
  asOfNow,
  type Budget,
  FRESH,
  isHeard,
  withPermit,
} from '../../../src/api/rate/budget.ts'
import { announced, budgetWith, DAY, flightOf, MINUTE, NOW, RULES, windowOf } from '../helpers/budgets.ts'

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
    ['a pause beyond a day', { closedUntil: NOW + DAY + 1 }, { closedUntil: 0 }],
  ])('leaves nothing of the future in %s', (_case, written, expected) => {
    expect(asOfNow(budgetWith(written), NOW)).toEqual(budgetWith(expected))
  })
})

describe('a report', () => {
  it('of answers from before a clock was set back leaves nothing of the future', () => {
    const answers = [{ at: NOW + HOUR, leftIn: null, announced: announced(60, 59) }]
    const told = { by: 'one', inFlight: 0, answers, unannounced: [] }

    const { window, heardAt } = afterReport(FRESH, told, RULES, NOW)

    expect([window?.endsAt, heardAt]).toEqual([NOW + 61_000, NOW])
  })

  it('of requests that were not written counts them from now on', () => {
    const told = { by: 'one', inFlight: 2, answers: [], unannounced: [] }

    expect(afterReport(FRESH, told, RULES, NOW).inFlight).toEqual([{ by: 'one', count: 2, at: NOW }])
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
})

describe('a server that was heard', () => {
  const over = windowOf({ endsAt: NOW - 5000 })

  it.each<[string, Partial<Budget>, boolean]>([
    ['a minute ago is none', { heardAt: NOW - MINUTE }, false],
    ['less than a minute ago is one', { heardAt: NOW - MINUTE + 1 }, true],
    ['after a 429 is one', { heardAt: NOW - 4, throttledAt: NOW - 5 }, true],
    [
      'before a given-up process is none',
      { heardAt: NOW - 4, inFlight: [flightOf({ at: NOW - 20_003 })] },
      false,
    ],
    ['in this window is one', { heardAt: NOW - 4999, window: { ...over, ours: 20 } }, true],
    ['in the last window is one, where all of it was ours', { heardAt: NOW - 5000, window: over }, true],
  ])('%s', (_case, written, expected) => {
    expect(isHeard({ ...FRESH, ...written }, NOW)).toBe(expected)
  })
})
