import { describe, expect, it } from 'vitest'
import { identifyItems } from '../../../../src/sync/items.ts'
import { GLOBEX, jobOf } from '../../../helpers/jobs.ts'
import { pageOf } from '../../../helpers/pages.ts'
import { runOnce } from '../../../helpers/run-once.ts'
import { scriptedList, upTo } from '../../../helpers/scripted-list.ts'
import { beginTestWalk, openTestMirror, type TestMirror } from '../../../helpers/test-mirror.ts'

const GLOBEX_ORDERS = jobOf({}, GLOBEX)

/** All live ids, one list for each call. */
async function allKeys({ store }: TestMirror, between: () => Promise<unknown> = async () => {}) {
  const ids: string[][] = []
  let from: string | null = null
  do {
    const batch: { ids: string[]; next: string | null } = await store.liveKeys(jobOf(), from)
    ids.push(batch.ids)
    from = batch.next
    await between()
  } while (from !== null)
  return ids
}

describe('the live keys', () => {
  it('are those of one organization', async () => {
    const test = openTestMirror()
    await runOnce(test, scriptedList({ ids: upTo(6) }))
    await runOnce(test, scriptedList({ ids: [7, 8] }), { job: GLOBEX_ORDERS })

    expect(await allKeys(test)).toEqual([['1', '2', '3', '4', '5', '6']])
  })

  it('come in batches', async () => {
    const test = openTestMirror()
    await runOnce(test, scriptedList({ ids: upTo(4001), perPage: 1000 }))

    const batches = await allKeys(test)

    expect(batches.map((ids) => ids.length)).toEqual([4000, 1])
    expect(batches.flat()).toEqual(upTo(4001).map(String))
  })

  it('start again when a key column became TEXT, which has another order', async () => {
    const test = openTestMirror()
    await runOnce(test, scriptedList({ ids: upTo(4001), perPage: 1000 }))
    let isFirst = true
    const becomesText = async () => {
      if (isFirst) await (await beginTestWalk(test, GLOBEX_ORDERS)).saveItems('{"id":"x"}')
      isFirst = false
    }

    const batches = await allKeys(test, becomesText)

    expect(batches.map((ids) => ids.length)).toEqual([4000, 4000, 1])
    expect(new Set(batches.slice(1).flat()).size).toBe(4001)
  })

  it('are none if the collection has no tables', async () => {
    expect(await allKeys(openTestMirror())).toEqual([[]])
  })
})

const job = (key: string[]) => jobOf({ key })

describe('a lookup', () => {
  it.each<[string, string[], string[], string[], string[]]>([
    [
      'one key',
      ['id'],
      ['{"id":1}', '{"id":2,"a":1}'],
      ['{"id":1}', '{"id":2,"a":2}', '{"id":3}'],
      ['same', 'different', 'absent'],
    ],
    [
      'a key that no INTEGER column can hold',
      ['id'],
      ['{"id":7}'],
      ['{"id":"007"}', '{"id":"7"}'],
      ['absent', 'different'],
    ],
    [
      'several fields',
      ['a', 'b.c'],
      ['{"a":1,"b":{"c":"x"}}'],
      ['{"a":1,"b":{"c":"x"}}', '{"a":1,"b":{"c":"y"}}'],
      ['same', 'absent'],
    ],
    ['a key with quotes and emoji', ['id'], ['{"id":"\\"]🎉\\u0001"}'], ['{"id":"\\"]🎉\\u0001"}'], ['same']],
    ['an item without a usable key', ['id'], ['{"no":1}'], ['{"no":1}', '{"no":2}'], ['same', 'absent']],
    ['no item', ['id'], ['{"id":1}'], [], []],
  ])('compares each item with what is stored: %s', async (_what, key, stored, items, expected) => {
    const test = openTestMirror()
    await (await beginTestWalk(test, job(key))).saveItems(...stored)

    const found = await test.store.lookup(job(key), identifyItems(job(key), pageOf(items)))

    expect(found.map(({ state }) => state)).toEqual(expected)
  })

  it('finds nothing of a collection without tables', async () => {
    const items = identifyItems(jobOf(), pageOf(['{"id":1}']))

    expect(await openTestMirror().store.lookup(jobOf(), items)).toEqual([{ state: 'absent' }])
  })
})
