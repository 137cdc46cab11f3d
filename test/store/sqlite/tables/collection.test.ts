import { describe, expect, it } from 'vitest'
import { problemsOf, SMALLEST } from '../../../config/config-files.ts'
import { timeAt } from '../../../helpers/clock.ts'
import { jobOf } from '../../../helpers/jobs.ts'
import { runOnce } from '../../../helpers/run-once.ts'
import { scriptedList, upTo } from '../../../helpers/scripted-list.ts'
import { openTestMirror } from '../../../helpers/test-mirror.ts'
import { begin } from '../../stage.ts'

describe('the columns of a collection', () => {
  it('are listed with path, type and times', async () => {
    const test = openTestMirror()
    const { page } = await begin(test)
    await page('{"id":1,"total":20,"a.b":"x"}')
    test.clock.advance(1000)
    await page('{"id":2,"total":20.5,"customer":{"email":"a@example.com"}}')
    test.clock.advance(1000)

    await page('{"id":3,"total":"free"}')

    const columns = test.rows(`
      SELECT "column", path, type, first_seen_at
      FROM sync_columns
      WHERE collection = 'orders'
    `)
    const [first, second, third] = [timeAt(0), timeAt(1000), timeAt(2000)]
    expect(columns.map((row) => Object.values(row))).toEqual([
      ['id', '$.id', 'INTEGER', first],
      ['total', '$.total', 'REAL', first],
      ['a.b', '$."a.b"', 'TEXT', first],
      ['customer__email', '$.customer.email', 'TEXT', second],
      ['total__text', '$.total', 'TEXT', third],
    ])
  })
})

it('the live keys come in batches', async () => {
  const { store, ...test } = openTestMirror()
  await runOnce({ store, ...test }, scriptedList({ ids: upTo(4001), perPage: 1000 }))

  const first = await store.liveKeys(jobOf(), null)
  const second = await store.liveKeys(jobOf(), first.next)

  expect([first.ids.length, second.ids.length, second.next]).toEqual([4000, 1, null])
  expect(new Set([...first.ids, ...second.ids]).size).toBe(4001)
})

it('no collection can have the name of anything that the mirror creates', async () => {
  const test = openTestMirror()
  const { page } = await begin(test)
  await page('{"id":1,"lines":[{"sku":"a"}]}')
  const made = test.rows('SELECT name FROM sqlite_schema').map(({ name }) => String(name))

  const names = made.filter((name) => name !== 'orders')

  expect(names).toEqual(expect.arrayContaining(['sync_runs', '_orders_history_by_key', 'orders__lines']))
  for (const name of names)
    expect(problemsOf(`${SMALLEST}collections:\n  ${name}: {}\n`)).toEqual([
      expect.stringContaining(`collections.${name}: `),
    ])
})
