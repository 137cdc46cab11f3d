import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { MirrorError } from '../../../src/errors.ts'
import type { Page } from '../../../src/sync/types.ts'
import { timeAt } from '../../helpers/clock.ts'
import { jobOf } from '../../helpers/jobs.ts'
import { pageOf } from '../../helpers/pages.ts'
import { beginTestWalk, dump, openTestMirror, type TestMirror } from '../../helpers/test-mirror.ts'

// What a page writes: test/store/contract.ts, and tables/any-pages.test.ts.

const FIRST = pageOf(['{"id":1,"total":20}', '{"id":2,"total":30}', '"no order"'], {
  next: 2,
  lastPage: 2,
  total: 5,
})

/**
 * A page on which everything happens: a new row, a changed one, a reject, columns, a wider one, a view,
 * another key.
 */
const EVENTFUL: Page = pageOf(
  [
    '{"id":1,"total":20.5,"note":"new column","lines":[{"sku":"a"}]}',
    '{"id":3,"total":"free"}',
    '{"id":"x-4","total":1}',
    '{"total":5}',
  ],
  { number: 2, next: 3, lastPage: 3, total: 60 },
)

const BREAKS: [string, string][] = [
  ['the ledger', 'INSERT ON sync_pages'],
  ['the checkpoint', 'UPDATE OF next_page ON sync_walks'],
  ['the counts of the walk', 'UPDATE OF rows_seen ON sync_walks'],
  ['the counts of the run', 'UPDATE ON sync_runs'],
  ['the number of rows', 'UPDATE OF rows ON sync_jobs'],
  ['the rejects', 'INSERT ON sync_rejects'],
  ['the list of columns', 'INSERT ON sync_known_columns'],
]

describe('a page that cannot be committed whole', () => {
  it.each(BREAKS)(
    'is not stored at all, and is committed as usual once that is repaired: %s cannot be written',
    async (_what, event) => {
      const [test, whole] = [openTestMirror(), openTestMirror()]
      const [broken, unbroken] = [await beginTestWalk(test, jobOf()), await beginTestWalk(whole, jobOf())]
      for (const { save } of [broken, unbroken]) await save(FIRST)
      for (const mirror of [test, whole]) breakAt(mirror, event)
      const before = dump(test)
      await expect(broken.save(EVENTFUL)).rejects.toThrow(MirrorError)
      expect(dump(test)).toEqual(before)
      for (const mirror of [test, whole]) mend(mirror)

      for (const { save } of [broken, unbroken]) await save(EVENTFUL)

      expect(dump(test)).toEqual(dump(whole))
      expect(test.value('PRAGMA integrity_check')).toBe('ok')
    },
  )
})

/** A foreign trigger that fails each write there until `mend`, which leaves the schema as it is. */
function breakAt({ file }: TestMirror, event: string): void {
  write(
    file,
    `CREATE TABLE broken (is_it INTEGER);
     INSERT INTO broken VALUES (1);
     CREATE TRIGGER breaking BEFORE ${event} WHEN EXISTS (SELECT 1 FROM broken)
     BEGIN SELECT RAISE(ABORT, 'broken'); END`,
  )
}

function mend({ file }: TestMirror): void {
  write(file, 'DELETE FROM broken')
}

function write(file: string, sql: string): void {
  new Database(file).exec(sql).close()
}

// What is kept of it: test/sandbox-faults/odd-data.test.ts.
describe('an item that is rejected', () => {
  it('only gets a new time when it comes again', async () => {
    const test = openTestMirror()
    const { saveItems } = await beginTestWalk(test, jobOf())
    await saveItems('{"total":1}')
    const [before] = test.rows('SELECT * FROM sync_rejects')
    test.clock.advance(60_000)

    await saveItems('{"total":1}', '{"total":1}')

    expect(test.rows('SELECT * FROM sync_rejects')).toEqual([{ ...before, seen_at: timeAt(60_000) }])
  })
})
