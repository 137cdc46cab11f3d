import { expect, it } from 'vitest'
import { watchEdges } from '../../../helpers/edges.ts'
import { GLOBEX, jobOf } from '../../../helpers/jobs.ts'
import { runOnce } from '../../../helpers/run-once.ts'
import { scriptedList, upTo } from '../../../helpers/scripted-list.ts'
import { openTestMirror, type TestMirror } from '../../../helpers/test-mirror.ts'
import { begin } from '../../stage.ts'

const listOf = (ids: number[]) =>
  scriptedList({ ids, perPage: 1000, item: (id) => `{"id":${id},"shop":${id % 100},"zip":"0${id}"}` })

/** How SQLite would go about it. */
const planOf = (test: TestMirror, sql: string) =>
  test.rows(`EXPLAIN QUERY PLAN ${sql}`).map(({ detail }) => String(detail))

it('the planner has statistics after the first sync, so that no join goes through all orders for each shop', async () => {
  const test = openTestMirror()
  const job = jobOf({ name: 'establishments' })
  expect(await runOnce(test, listOf(upTo(100)), { job })).toMatchObject({ error: null })
  expect(await runOnce(test, listOf(upTo(2000)))).toMatchObject({ error: null })

  const sql = `
    SELECT shops.id, count(*)
    FROM orders
    JOIN establishments AS shops ON shops._organization_id = orders._organization_id AND shops.id = orders.shop
    WHERE shops.zip LIKE '0%'
    GROUP BY shops._organization_id, shops.id
  `
  expect(planOf(test, sql).filter((detail) => /^(SCAN|SEARCH) /.test(detail))).toEqual([
    expect.stringMatching(/^SCAN orders/),
    expect.stringMatching(/^SEARCH shops .*\(_organization_id=\? AND id=\?\)/),
  ])
})

it('a run begins, and live rows are named, without a look at older runs and rows of other organizations', async () => {
  const test = openTestMirror()
  const { page } = await begin(test)
  await page('{"id":1}', '{"id":2}')
  const asked: string[] = []
  const end = watchEdges(({ what }) => asked.push(what.replaceAll(/[:@]\w+|\?/g, "'1'")))
  const { walk } = await begin(test)
  await begin(test, jobOf(), { resume: walk.id })
  await test.store.liveKeys(jobOf(), '1')
  end()

  const plansOf = (of: RegExp) => asked.filter((sql) => of.test(sql)).map((sql) => planOf(test, sql))
  const [running, ofWalks] = ['sync_runs_running', 'sync_runs_of_walks'].map((index) => [
    expect.stringContaining(`INDEX ${index} `),
  ])
  // The second run takes up a walk without a page.
  expect(plansOf(/^UPDATE sync_runs/)).toEqual([running, ofWalks, running])
  expect(plansOf(/^SELECT .* FROM "orders"/)).toEqual([
    ['SEARCH t USING COVERING INDEX _orders_by_key (_organization_id=? AND id>?)'],
  ])
})

it('statistics are not made of a few rows, with which the next walk would look for each of its rows in the whole table', async () => {
  const asked = new Set<string>()
  const end = watchEdges(({ what }) => {
    if (/orders/.test(what) && /json_each/.test(what)) asked.add(what.replaceAll(/[:@]\w+|\?/g, "'1'"))
  })
  await runOnce(openTestMirror(), listOf(upTo(60)))
  end()
  const test = openTestMirror()
  await runOnce(test, listOf([1]), { job: jobOf({}, GLOBEX) })

  expect(asked.size).toBeGreaterThan(0)
  for (const sql of asked)
    expect(
      planOf(test, sql).filter((detail) => /^SCAN (?:t|j|orders)\b/.test(detail)),
      sql,
    ).toEqual([])
})
