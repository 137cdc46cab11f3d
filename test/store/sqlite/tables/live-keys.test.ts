import { describe, expect, it } from 'vitest'
import { GLOBEX, jobOf } from '../../../helpers/jobs.ts'
import { runOnce } from '../../../helpers/run-once.ts'
import { scriptedList, upTo } from '../../../helpers/scripted-list.ts'
import { beginTestWalk, openTestMirror, type TestMirror } from '../../../helpers/test-mirror.ts'

const GLOBEX_ORDERS = jobOf({}, GLOBEX)

/** All live ids, one list for each call. */
async function allKeys({ store }: TestMirror, between: () => Promise<unknown>) {
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
  it('come in batches, and start again when a key column became TEXT, which has another order', async () => {
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
})
