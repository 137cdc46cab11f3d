import { expect, it } from 'vitest'
import { createPageTimes } from '../../src/sync/page-writer.ts'

it('the times of pages never go back, and a refresh has each of its pages at a time of its own', () => {
  let now = 1000
  const { ofWalk, ofRefresh } = createPageTimes({ lastPageAt: 500 }, () => now)

  expect([ofWalk(), ofWalk(), ofRefresh(), ofRefresh(), ofWalk()]).toEqual([1000, 1000, 1001, 1002, 1003])
  now = 900
  expect([ofWalk(), ofRefresh(), ofWalk()]).toEqual([1003, 1004, 1005])
  now = 2000
  expect([ofWalk(), ofRefresh()]).toEqual([2000, 2001])
})

it.each([
  ['the last page', 3000, 0, 3000],
  ['what a refresh has settled', 0, 3000, 3001],
])('the times of pages begin behind %s, whatever the clock says', (_, lastPageAt, settledAt, first) => {
  expect(createPageTimes({ lastPageAt }, () => 1000, settledAt).ofWalk()).toBe(first)
})
