import { describe, expect, it } from 'vitest'
import {
  type CoverageState,
  type Movement,
  NO_MOVEMENT,
  startCheckpoint,
} from '../../../src/sync/coverage/state.ts'
import { expectedMissed } from '../../../src/sync/coverage/verdict.ts'

const FRESH = startCheckpoint(1).state

/** A pass over 4,000 pages of 25 that saw these movements. */
function passOf(movement: Partial<Movement>, state: Partial<CoverageState> = {}): CoverageState {
  const read = { lastPage: 4000, passAnswers: 4130, askedAgain: 130, passDistinct: 100_000 }
  return { ...FRESH, ...read, ...state, movement: { ...NO_MOVEMENT, newToWalk: 100_000, ...movement } }
}

/** One addition and one deletion a minute, at 60 requests a minute: half of the deletions are behind the reader. */
const ANYWHERE = { rises: 67, falls: 67, pulled: 33 }
const OLDEST = { rises: 67, falls: 67, pulled: 67 }

describe('what a walk expects to have missed', () => {
  it.each<[string, CoverageState, number]>([
    ['0 if nothing moved', passOf({}), 0],
    ['0 if items only came', passOf({ rises: 67 }), 0],
    ['0 if items only left', passOf({ falls: 67, pulled: 33 }), 0],
    ['0 if items were only relocated, and all found', passOf({ skips: 33 }, { relocated: 33 }), 0],
    ['deletions anywhere: those that hide within a look', passOf(ANYWHERE), 0.00494],
    ['more, if looks found something', passOf({ ...ANYWHERE, skips: 1 }), 0.0214],
    ['deletions at the front: those before the first look', passOf(OLDEST), 0.0186],
    ['the same, though looks found something', passOf({ ...OLDEST, skips: 2 }), 0.0186],
    [
      'nine times as many in a list three times as fast',
      passOf({ rises: 200, falls: 200, pulled: 200 }),
      0.177,
    ],
    ['items pushed away from a step back', passOf({ falls: 67, pulled: 33, pushes: 30 }), 0.00291],
    ['the last of many that left at once', passOf({ together: 52 }, { perPage: 25 }), 0.0466],
    [
      'nearly 0 in a later pass that saw the same items as the one before',
      passOf({ ...OLDEST, newToWalk: 60 }),
      0.0000111,
    ],
    [
      'many in a short list that moves with every second page',
      passOf(
        { rises: 8, falls: 6, pulled: 3, newToWalk: 1500 },
        { lastPage: 60, passAnswers: 85, askedAgain: 23, passDistinct: 1500 },
      ),
      0.42,
    ],
    [
      '0, and nothing below, in a short list that moved in front and behind alike',
      passOf(
        { rises: 2, falls: 2, pushes: 2, newToWalk: 300 },
        { lastPage: 39, passAnswers: 41, askedAgain: 2, passDistinct: 300, perPage: 25 },
      ),
      0,
    ],
    [
      '0 if the list became empty',
      passOf({ newToWalk: 0, falls: 1 }, { lastPage: 1, passAnswers: 2, askedAgain: 0, passDistinct: 0 }),
      0,
    ],
  ])('is %s', (_what, state, missed) => {
    expect(expectedMissed('repaired', state)).toBe(missed)
  })

  it.each([
    ['0 if the walk is steady', 'steady' as const, passOf(ANYWHERE), 0],
    ['null if it drifted', 'drifted' as const, passOf(ANYWHERE), null],
    ['null without a total to count by', null, passOf(ANYWHERE), null],
    [
      'null for a walk from a version that did not count',
      'repaired' as const,
      { ...passOf({}), movement: null },
      null,
    ],
  ])('is %s', (_what, coverage, state, expected) => {
    expect(expectedMissed(coverage, state)).toBe(expected)
  })
})
