import { describe, expect, it } from 'vitest'
import {
  asOfNow,
  type Budget,
  budgetOf,
  budgetText,
  FRESH,
  isHeard,
  onTheirWay,
  unaccounted,
  unanswered,
  withSent,
} from '../../src/api/rate-budget.ts'
import { blockOf, budgetWith, DAY, MINUTE, NOW, windowOf } from './helpers/budgets.ts'

const HOUR = 60 * MINUTE

describe('a clock that went back', () => {
  it.each<[string, Partial<Budget>, Partial<Budget>]>([
    ['what was sent', { sent: [[NOW + HOUR, 3]] }, { sent: [[NOW + 500, 3]] }],
    [
      'the end of a window',
      { window: windowOf({ endsAt: NOW + HOUR }) },
      { window: windowOf({ endsAt: NOW + 61_000 }) },
    ],
    ['a block', { blocks: [blockOf({ until: NOW + HOUR })] }, { blocks: [blockOf({ until: NOW + 10_000 })] }],
    ['the last answer', { heardAt: NOW + HOUR }, { heardAt: NOW }],
    ['the last 429', { throttledAt: NOW + HOUR }, { throttledAt: NOW }],
    [
      'a limit that was learned',
      { unannounced: { ...FRESH.unannounced, learnedAt: NOW + HOUR } },
      { unannounced: { ...FRESH.unannounced, learnedAt: NOW } },
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
    ['a block', { blocks: [blockOf()] }],
    ['a pause of a day', { closedUntil: NOW + DAY }],
  ])('is none that changes %s', (_case, written) => {
    expect(asOfNow(budgetWith(written), NOW)).toEqual(budgetWith(written))
  })
})

describe('what is older than a minute and a second', () => {
  it('counts no more', () => {
    const old = budgetWith({
      sent: [
        [NOW - 61_001, 1],
        [NOW - 61_000, 1],
      ],
      blocks: [blockOf({ until: NOW - 61_001 }), blockOf({ by: 'a third', until: NOW - 61_000 })],
    })

    const { sent, blocks } = asOfNow(old, NOW)

    expect(sent).toEqual([[NOW - 61_000, 1]])
    expect(blocks.map(({ by }) => by)).toEqual(['a third'])
  })
})

describe('requests that left', () => {
  it('are counted by the half second in which they did', () => {
    const before = budgetWith({ sent: [[NOW, 1]] })

    const { sent } = withSent(before, [NOW - 100, NOW, NOW + 1, NOW + 500, NOW + 501])

    expect(sent).toEqual([
      [NOW, 3],
      [NOW + 500, 2],
      [NOW + 1000, 1],
    ])
  })
})

describe('requests of several processes', () => {
  const blocks = [
    blockOf({ by: 'one', count: 3, inFlight: 1 }),
    blockOf({ by: 'another', count: 0, inFlight: 2, until: NOW - 10_000 }),
    blockOf({ by: 'a killed one', count: 5, until: NOW - 10_001 }),
  ]

  it('may have left, and are then not accounted for', () => {
    expect(unaccounted(budgetWith({ blocks }))).toBe(8)
  })

  it('may be unanswered, when they have left or may have left', () => {
    expect(unanswered({ blocks })).toBe(11)
  })

  it('are on their way no more once a process has said nothing for so long', () => {
    expect(onTheirWay(budgetWith({ blocks }), NOW)).toBe(6)
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
      'before a process was given up is none',
      { heardAt: NOW - 4, blocks: [blockOf({ count: 0, until: NOW - 10_003 })] },
      false,
    ],
    [
      'after a process was given up is one',
      { heardAt: NOW - 1, blocks: [blockOf({ count: 0, until: NOW - 10_003 })] },
      true,
    ],
    ['while all processes live is one', { heardAt: NOW - 4, blocks: [blockOf({ until: NOW - 9999 })] }, true],
    [
      'in the last window is none, where others use the budget',
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

describe('what the memory keeps', () => {
  it('is the budget, but for its pause, which is kept beside it', () => {
    const budget = budgetWith({
      sent: [[NOW, 1]],
      blocks: [blockOf()],
      window: windowOf(),
      closedUntil: NOW + 1,
    })

    expect(budgetOf(budgetText(budget), 7)).toEqual({ ...budget, closedUntil: 7 })
  })

  it('may lack what an earlier version did not know', () => {
    expect(budgetOf('{"throttled":3}', 0)).toEqual({ ...FRESH, throttled: 3 })
  })

  it('is nothing at first', () => {
    expect(budgetOf(null, 0)).toEqual(FRESH)
  })
})
