import { expect, it } from 'vitest'
import { InterruptedError } from '../../../src/errors.ts'
import { upTo } from '../../helpers/scripted-list.ts'
import { openTestMirror, type TestMirror } from '../../helpers/test-mirror.ts'
import { begin } from '../stage.ts'

const item = (id: number) => `{"id":${id}}`

/** 2,500 orders, and a walk that saw only the first 100 of them. */
async function scene() {
  const test = openTestMirror()
  await (await begin(test)).page(...upTo(2500).map(item))
  const walk = await begin(test)
  await walk.page(...upTo(100).map(item))
  return { test, walk }
}

const countsOf = (test: TestMirror) =>
  test.rows(`
    SELECT
      (SELECT count(*) FROM orders) AS live,
      (SELECT count(*) FROM orders_json) AS json,
      (SELECT count(*) FROM orders_history WHERE _reason = 'removed') AS gone,
      (SELECT rows FROM sync_jobs WHERE rows > 0) AS counted,
      (SELECT sum(rows_removed) FROM sync_runs) AS removed
  `)[0]

const ALL_GONE = { live: 100, json: 100, gone: 2400, counted: 100, removed: 2400 }

it('many rows are removed in batches, of which a follower sees each row once', async () => {
  const { test, walk } = await scene()
  expect(await walk.missing(true)).toEqual({ removable: 2400, held: 0, live: 2500 })

  expect(await walk.close('remove')).toEqual({ heldBack: null })

  expect(countsOf(test)).toEqual(ALL_GONE)
  const batches = test.rows(
    "SELECT seq, count(*) AS events FROM orders_changes WHERE change = 'removed' GROUP BY seq ORDER BY seq",
  )
  expect(batches.map(({ events }) => events)).toEqual([1000, 1000, 400])
  const returned = await begin(test)
  await returned.page(item(2000), item(3000))
  expect(
    test.rows('SELECT id, change FROM orders_changes WHERE id IN (2000, 3000) ORDER BY seq, id'),
  ).toEqual([
    { id: 2000, change: 'added' },
    { id: 2000, change: 'removed' },
    { id: 2000, change: 'returned' },
    { id: 3000, change: 'added' },
  ])
})

it('a walk that is stopped between two batches stays open, and who goes on with it removes the rest', async () => {
  const { test, walk } = await scene()
  await walk.missing(true)
  test.stop()

  await expect(walk.close('remove')).rejects.toThrow(InterruptedError)

  expect(countsOf(test)).toEqual({ live: 1500, json: 1500, gone: 1000, counted: 1500, removed: 1000 })
  const resumer = openTestMirror({ file: test.file, clock: test.clock })
  const resumed = await begin(resumer, undefined, { resume: walk.walk.id })
  expect(await resumed.missing(true)).toEqual({ removable: 1400, held: 0, live: 1500 })
  await resumed.close('remove')
  expect(countsOf(test)).toEqual(ALL_GONE)
})
