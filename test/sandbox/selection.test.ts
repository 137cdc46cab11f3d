import { describe, expect, it } from 'vitest'
import { allBut, exactly, type Selection, startingAt } from '../../src/sandbox/selection.ts'

function membersOf({ total, indexAt }: Selection): number[] {
  return Array.from({ length: total }, (_, position) => indexAt(position))
}

describe('a selection', () => {
  it.each<[string, Selection, number[]]>([
    ['of all', allBut(4, []), [0, 1, 2, 3]],
    ['of none', allBut(0, []), []],
    ['without the first', allBut(4, [0]), [1, 2, 3]],
    ['without the last', allBut(4, [3]), [0, 1, 2]],
    ['without neighbours', allBut(6, [1, 2, 4]), [0, 3, 5]],
    ['without any left', allBut(2, [0, 1]), []],
    ['of named ones', exactly(Uint32Array.of(2, 5, 9)), [2, 5, 9]],
    ['from a gap on', startingAt(allBut(6, [1, 2, 4]), 1), [3, 5]],
    ['from a member on', startingAt(allBut(6, [1, 2, 4]), 3), [3, 5]],
    ['from beyond the end on', startingAt(allBut(6, [1, 2, 4]), 6), []],
    ['of named ones from one on', startingAt(exactly(Uint32Array.of(2, 5, 9)), 3), [5, 9]],
    ['from a start on, from a later start on', startingAt(startingAt(allBut(6, [1]), 2), 4), [4, 5]],
    ['from a start on, from an earlier start on', startingAt(startingAt(allBut(6, [1]), 4), 2), [4, 5]],
  ])('%s has these members', (_, selection, members) => {
    expect(membersOf(selection)).toEqual(members)
  })
})
