import { describe, expect, it } from 'vitest'
import { totalsAfter } from '../../../src/sync/coverage/observe.ts'
import { startCheckpoint, type Totals, type Why } from '../../../src/sync/coverage/state.ts'
import {
  isSwinging,
  isTotalWrong,
  offBy,
  totalOff,
  totalsOfNextPass,
} from '../../../src/sync/coverage/verdict.ts'
import { pageOf } from '../../helpers/pages.ts'

const FRESH = startCheckpoint(1).state

/** Answers with three items each and these totals, all to `forward` unless `whys` says otherwise. */
function seen(totals: readonly (number | null)[], whys: readonly Why[] = []): Totals {
  return totals.reduce<Totals>((before, total, index) => {
    const page = pageOf(['{"id":1}', '{"id":2}', '{"id":3}'], { number: index + 1, next: null, total })
    return totalsAfter(before, whys[index] ?? 'forward', page)
  }, FRESH.totals)
}

/** This many totals, repeating these. */
function often(totals: readonly number[], answers = 40): number[] {
  return Array.from({ length: answers }, (_, index) => totals[index % totals.length] ?? 0)
}

const STEPS = Array.from({ length: 40 }, (_, index) => 100 + index)

describe('a total', () => {
  it.each<[string, readonly (number | null)[], boolean]>([
    ['never changes', often([100]), false],
    ['rises all the time', STEPS, false],
    ['falls all the time', STEPS.toReversed(), false],
    ['goes up and down', often([100, 101]), true],
    ['goes up and down by chance', often([100, 103, 98, 99, 104, 101, 97]), true],
    ['goes up and down around a list that grows', STEPS.map((total, index) => total + (index % 2) * 4), true],
    ['goes up and down now and then', often([100, 100, 101, 101, 101, 100, 100, 100]), false],
    ['goes up and down, though not for long', often([100, 101], 19), false],
    ['is missing', often([100]).map(() => null), false],
  ])('that %s swings, or does not', (_what, totals, swings) => {
    expect(isSwinging({ totals: seen(totals) })).toBe(swings)
  })

  it.each<[string, Totals, number | null]>([
    ['as many as were listed', seen([9, 9, 9]), 0],
    ['too high', seen([12, 12, 12]), 3],
    ['too low', seen([7, 7, 7]), -2],
    ['the last one of a moving list counts', seen([7, 8, 9]), 0],
    [
      'pages asked again do not count',
      seen([9, 9, 9, 8, 9], ['forward', 'forward', 'forward', 'back', 'look']),
      0,
    ],
    ['unknown after an overlap', seen([9, 9, 9], ['forward', 'overlap', 'forward']), null],
    ['no total', seen([null, null]), null],
  ])('is off by so much: %s', (_what, totals, off) => {
    expect(offBy({ totals })).toBe(off)
  })

  it.each<[string, Partial<typeof FRESH>, boolean, 'once' | 'again' | null]>([
    ['it is right', { totals: seen([9, 9, 9]) }, false, null],
    ['it is off once', { totals: seen([12, 12, 12]) }, false, 'once'],
    ['it is off, as it was before', { totals: { ...seen([12, 12, 12]), isDoubted: true } }, true, 'again'],
    ['it is right again', { totals: { ...seen([9, 9, 9]), isDoubted: true } }, false, null],
    ['it swings', { totals: seen(often([100, 101])) }, true, 'again'],
    [
      'the last page is wrong',
      { passShort: true, totals: { ...seen([12, 12, 12]), isDoubted: true } },
      false,
      'once',
    ],
  ])('is wrong, or may be: %s', (_what, state, isWrong, off) => {
    expect(isTotalWrong({ ...FRESH, ...state })).toBe(isWrong)
    expect(totalOff('drifted', { ...FRESH, ...state })).toBe(off)
    expect(totalOff('repaired', { ...FRESH, ...state })).toBeNull()
  })

  it('is doubted in the next pass if it was off', () => {
    const off = totalsOfNextPass({ ...FRESH, totals: seen([12, 12, 12]) })
    const right = totalsOfNextPass({ ...FRESH, totals: { ...seen([9, 9, 9]), isDoubted: true } })

    expect([off, right]).toMatchObject([
      { isDoubted: true, listed: 0, answers: 3 },
      { isDoubted: false, listed: 0, answers: 3 },
    ])
  })
})
