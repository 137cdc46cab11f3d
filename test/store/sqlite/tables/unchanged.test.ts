import { describe, expect, it } from 'vitest'
import { jobOf } from '../../../helpers/jobs.ts'
import { pageOf } from '../../../helpers/pages.ts'
import { beginTestWalk, complete, openTestMirror, type TestMirror } from '../../../helpers/test-mirror.ts'

const PAGES = 200
const JOB = jobOf()

function pageAt(number: number) {
  const texts = Array.from({ length: 25 }, (_, index) => textOf(number * 25 + index))
  const next = number < PAGES ? number + 1 : null
  return pageOf(texts, { number, next, lastPage: PAGES, total: PAGES * 25 })
}

/** As large as a typical order, with a long key. */
function textOf(number: number): string {
  const id = `7f3c0f1e-52c7-4a86-9d0b-${String(number * 7919).padStart(12, '0')}`
  return JSON.stringify({ id, note: 'x'.repeat(400), lines: [{ sku: 'TEA-001', quantity: number % 9 }] })
}

/** Walks the list once. Returns the mean number of WAL frames for each page. */
async function walkOnce(test: TestMirror): Promise<number> {
  const look = test.connection.prepare('PRAGMA wal_checkpoint(NOOP)')
  const logged = () => (look.get() as { log: number }).log
  const { walk, save } = await beginTestWalk(test, JOB)
  let frames = 0
  for (let number = 1; number <= PAGES; number++) {
    const before = logged()
    await save(pageAt(number))
    const after = logged()
    // After a checkpoint of everything, the WAL begins again.
    frames += after < before ? after : after - before
  }
  await complete(test, JOB, walk)
  return frames / PAGES
}

describe('a walk over rows that did not change', () => {
  it('writes no raw, typed or history row', async () => {
    const test = openTestMirror()
    await walkOnce(test)
    const written: string[] = []
    test.connection.function('note_write', (table: string) => written.push(table))
    for (const table of ['orders', 'orders_raw', 'orders_history'])
      for (const event of ['INSERT', 'UPDATE', 'DELETE'])
        test.connection.exec(
          `CREATE TEMP TRIGGER ${event}_${table} AFTER ${event} ON ${table} BEGIN SELECT note_write('${table}'); END`,
        )

    await walkOnce(test)

    expect(written).toEqual([])
    test.connection.exec('UPDATE orders SET note = NULL WHERE id = (SELECT min(id) FROM orders)')
    expect(written).toEqual(['orders'])
  })
})
