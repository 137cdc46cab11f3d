import { describe, expect, it } from 'vitest'
import { expectedMissed } from '../../../src/sync/coverage/expected-missed.ts'
import { NO_MOVEMENT, startCheckpoint } from '../../../src/sync/coverage/start.ts'
import type { CoverageState, Movement } from '../../../src/sync/coverage/state.ts'

const FRESH = startCheckpoint(1).state

/** A pass over 4,000 pages of 25 that saw this of the list's movement. */
function passOf(movement: Partial<Movement>, state: Partial<CoverageState> = {}): CoverageState {
  const read = { lastPage: 4000, passAnswers: 4130, askedAgain: 130, passDistinct: 100_000 }
  return { ...FRESH, ...read, ...state, movement: { ...NO_MOVEMENT, newToWalk: 100_000, ...movement } }
}

/** One a minute each, at 60 requests a minute: half of what goes anywhere is behind the reader, and pulls an item over. */
const ANYWHERE = { rises: 67, falls: 67, pulled: 33 }
const OLDEST = { rises: 67, falls: 67, pulled: 67 }

describe('what a walk expects to have missed', () => {
  it.each<[string, CoverageState, number]>([
    ['nothing where nothing moved', passOf({}), 0],
    ['nothing where items only came', passOf({ rises: 67 }), 0],
    ['nothing where items only went', passOf({ falls: 67, pulled: 33 }), 0],
    ['nothing where items were only moved, and all found', passOf({ skips: 33 }, { relocated: 33 }), 0],
    ['what goes anywhere hides within a look', passOf(ANYWHERE), 0.00494],
    ['more, where looks found something', passOf({ ...ANYWHERE, skips: 1 }), 0.0214],
    ['what goes at the front hides before the first look', passOf(OLDEST), 0.0186],
    ['as much, though looks found something', passOf({ ...OLDEST, skips: 2 }), 0.0186],
    [
      'nine times as much of a list three times as fast',
      passOf({ rises: 200, falls: 200, pulled: 200 }),
      0.177,
    ],
    ['what is pushed back while it is looked for', passOf({ falls: 67, pulled: 33, pushes: 30 }), 0.00291],
    ['the last of many that went together', passOf({ together: 52 }, { perPage: 25 }), 0.0466],
    [
      'nearly nothing in a later pass that saw what the one before had seen',
      passOf({ ...OLDEST, newToWalk: 60 }),
      0.0000111,
    ],
    [
      'a good deal on a short list that moves with every second page',
      passOf(
        { rises: 8, falls: 6, pulled: 3, newToWalk: 1500 },
        { lastPage: 60, passAnswers: 85, askedAgain: 23, passDistinct: 1500 },
      ),
      0.42,
    ],
    [
      'nothing of a list that went',
      passOf({ newToWalk: 0, falls: 1 }, { lastPage: 1, passAnswers: 2, askedAgain: 0, passDistinct: 0 }),
      0,
    ],
  ])('is %s', (_what, state, missed) => {
    expect(expectedMissed('repaired', state)).toBe(missed)
  })

  it.each([
    ['0 where the walk is steady', 'steady' as const, passOf(ANYWHERE), 0],
    ['not told where it is drifted', 'drifted' as const, passOf(ANYWHERE), null],
    ['not told where there is nothing to count by', null, passOf(ANYWHERE), null],
    [
      'not told of a walk that began before it was counted',
      'repaired' as const,
      { ...passOf({}), movement: null },
      null,
    ],
  ])('is %s', (_what, coverage, state, expected) => {
    expect(expectedMissed(coverage, state)).toBe(expected)
  })
})
