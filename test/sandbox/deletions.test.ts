import { describe, expect, it } from 'vitest'
import { createDeletions } from '../../src/sandbox/deletions.ts'

function choose(tick: number): number {
  return (tick * 7919) % 101
}

describe('createDeletions', () => {
  it('deletes one index every half minute, and keeps them sorted', () => {
    const deletedAt = createDeletions((tick) => 100 - tick)

    const lists = [0, 29, 30, 89, 90].map((tick) => [...deletedAt(tick)])

    expect(lists).toEqual([[], [], [70], [40, 70], [10, 40, 70]])
  })

  it('deletes an index once, and nothing from an empty list', () => {
    const deletedAt = createDeletions((tick) => (tick < 60 ? null : 5))

    expect(deletedAt(300)).toEqual([5])
  })

  it('gives the same list for a moment however it was reached', () => {
    const stepwise = createDeletions(choose)
    for (let tick = 0; tick <= 900; tick += 13) stepwise(tick)

    const [later, earlier] = [[...stepwise(900)], [...stepwise(450)]]

    expect(later).toEqual(createDeletions(choose)(900))
    expect(earlier).toEqual(createDeletions(choose)(450))
  })
})
