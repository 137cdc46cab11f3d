import { expect, it } from 'vitest'
import { createPageTimes } from '../../src/sync/page-writer.ts'
import { jobOf } from '../helpers/jobs.ts'
import { runOnce } from '../helpers/run-once.ts'
import { scriptedList } from '../helpers/scripted-list.ts'
import { openTestMirror } from '../helpers/test-mirror.ts'

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

it('a row in which only ignored fields differ is left as it is', async () => {
  const test = openTestMirror()
  const job = jobOf({ ignore: ['seen', 'customer.visits'] })
  const read = async (number: number, name: string) => {
    const text = `{"id":1,"seen":${number},"customer":{"visits":${number},"name":"${name}"}}`
    await runOnce(test, scriptedList({ ids: [1], item: () => text }), { job })
    return test.rows('SELECT * FROM orders_raw')
  }

  const [first, same, changed] = [await read(1, 'a'), await read(2, 'a'), await read(3, 'b')]

  expect(same).toEqual(first)
  expect(changed).not.toEqual(first)
  expect(test.rows('SELECT change FROM orders_changes ORDER BY seq')).toEqual([
    { change: 'added' },
    { change: 'changed' },
  ])
})
