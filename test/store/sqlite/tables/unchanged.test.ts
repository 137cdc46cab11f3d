import { expect, it } from 'vitest'
import { runOnce } from '../../../helpers/run-once.ts'
import { scriptedList, upTo } from '../../../helpers/scripted-list.ts'
import { openTestMirror } from '../../../helpers/test-mirror.ts'

const item = (id: number) => JSON.stringify({ id, lines: [{ sku: 'TEA-001', quantity: id % 9 }] })

it('a walk over rows that did not change writes no raw, typed or history row', async () => {
  const test = openTestMirror()
  const walkOnce = () => runOnce(test, scriptedList({ ids: upTo(100), perPage: 25, item }))
  await walkOnce()
  const written: string[] = []
  test.connection.function('note_write', (table: string) => written.push(table))
  for (const table of ['orders', 'orders_raw', 'orders_history'])
    for (const event of ['INSERT', 'UPDATE', 'DELETE'])
      test.connection.exec(
        `CREATE TEMP TRIGGER ${event}_${table} AFTER ${event} ON ${table} BEGIN SELECT note_write('${table}'); END`,
      )

  await walkOnce()

  expect(written).toEqual([])
  test.connection.exec('UPDATE orders SET lines = NULL WHERE id = 1')
  expect(written).toEqual(['orders'])
})
