import { describe, expect, it } from 'vitest'
import { watchEdges } from '../../../helpers/edges.ts'
import { GLOBEX, jobOf } from '../../../helpers/jobs.ts'
import { runOnce } from '../../../helpers/run-once.ts'
import { scriptedList, upTo } from '../../../helpers/scripted-list.ts'
import { openTestMirror, type TestMirror } from '../../../helpers/test-mirror.ts'

const SHOPS = jobOf({ name: 'establishments', path: '/api/v1/admin/establishments' })

/** The tables as SQLite reads them for the orders of some shops, the outer one first. */
function planOf(test: TestMirror): string[] {
  const plan = test.rows(`
    EXPLAIN QUERY PLAN
    SELECT shops.id, count(*)
    FROM orders
    JOIN establishments AS shops ON shops._organization_id = orders._organization_id AND shops.id = orders.shop
    WHERE shops.zip LIKE '0%'
    GROUP BY shops._organization_id, shops.id
  `)
  return plan.map(({ detail }) => String(detail)).filter((detail) => /^(SCAN|SEARCH) /.test(detail))
}

async function fill(test: TestMirror, orders: number): Promise<void> {
  const lists = [
    {
      job: SHOPS,
      list: scriptedList({ ids: upTo(100), perPage: 100, item: (id) => `{"id":${id},"zip":"0${id}"}` }),
    },
    {
      job: jobOf(),
      list: scriptedList({
        ids: upTo(orders),
        perPage: 1000,
        item: (id) => `{"id":${id},"shop":${id % 100}}`,
      }),
    },
  ]
  for (const { job, list } of lists) expect((await runOnce(test, list, { job })).error).toBeNull()
}

const statistics = (test: TestMirror) =>
  test
    .rows("SELECT tbl, stat FROM sqlite_stat1 WHERE idx = '_' || tbl || '_by_key' ORDER BY tbl")
    .map(Object.values)

const orders = (ids: number[]) => scriptedList({ ids, item: (id) => `{"id":${id},"shop":${id}}` })

describe('the statistics for the planner', () => {
  it('are there after the first sync, so that no join goes through all orders for each shop', async () => {
    const test = openTestMirror()

    await fill(test, 2000)

    expect(planOf(test)).toEqual([
      expect.stringMatching(/^SCAN orders/),
      expect.stringMatching(/^SEARCH shops .*\(_organization_id=\? AND id=\?\)/),
    ])
    expect(statistics(test)).toEqual([
      ['establishments', '100 100 1'],
      ['orders', '2000 2000 1'],
    ])
  })

  it('are not made of a few rows, with which the next walk would look for each of its rows in the whole table', async () => {
    const asked = new Set<string>()
    const end = watchEdges(({ what }) => {
      if (/orders/.test(what) && /json_each/.test(what)) asked.add(what.replaceAll(/[:@]\w+|\?/g, "'1'"))
    })
    await runOnce(openTestMirror(), orders(upTo(60)))
    end()
    const test = openTestMirror()
    await runOnce(test, orders([1]), { job: jobOf({}, GLOBEX) })

    expect(asked.size).toBeGreaterThan(0)
    for (const sql of asked) {
      const plan = test.rows(`EXPLAIN QUERY PLAN ${sql}`).map(({ detail }) => String(detail))
      expect(
        plan.filter((detail) => /^SCAN (?:t|j|orders)\b/.test(detail)),
        sql,
      ).toEqual([])
    }
  })
})
