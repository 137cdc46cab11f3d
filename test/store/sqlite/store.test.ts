import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { MirrorError, UsageError } from '../../../src/errors.ts'
import { addressOf, claimAddress as claim } from '../../../src/store/core/settings.ts'
import { runRule } from '../../../src/store/sqlite/driver.ts'
import type { Page } from '../../../src/sync/types.ts'
import { GLOBEX, jobOf } from '../../helpers/jobs.ts'
import { pageOf } from '../../helpers/pages.ts'
import { beginTestWalk, dump, leaseOf, openTestMirror, type TestMirror } from '../../helpers/test-mirror.ts'

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

/** Two connections to one file, as of two processes; each walks the orders of an organization. */
async function twoWriters() {
  const first = openTestMirror()
  const second = openTestMirror({ file: first.file, clock: first.clock })
  const [acme, globex] = [await beginTestWalk(first, jobOf()), await beginTestWalk(second, jobOf({}, GLOBEX))]
  return { test: first, acme, globex }
}

describe('two processes that write to one collection', () => {
  it('number their events in the order in which they wrote them, whatever their clocks said', async () => {
    const { test, acme, globex } = await twoWriters()
    for (const a of [1, 2, 3]) {
      await acme.saveItems(`{"id":1,"a":${a}}`)
      test.clock.advance(-1000)
      await globex.saveItems(`{"id":1,"a":${a}}`)
    }

    const events = test.rows('SELECT seq, _organization_id AS org FROM orders_changes ORDER BY seq')
    expect(events.map(({ org }) => org === GLOBEX.id)).toEqual([false, true, false, true, false, true])
    expect(new Set(events.map(({ seq }) => seq)).size).toBe(6)
  })

  it('both notice that a column became REAL, a key TEXT, and a view wider', async () => {
    const { test, acme, globex } = await twoWriters()
    await acme.saveItems('{"id":1,"a":1,"lines":[{"n":1}]}')
    await globex.saveItems('{"id":1,"a":1}')
    await acme.saveItems('{"id":"x","a":0.5,"lines":[{"n":1,"m":1}]}')

    await globex.saveItems('{"id":2,"a":7,"lines":[{"n":0.5}]}')

    expect(test.rows('SELECT id, a FROM orders').map((row) => Object.values(row))).toEqual([
      ['1', 1],
      ['1', 1],
      ['x', 0.5],
      ['2', 7],
    ])
    expect(test.rows('SELECT n, m FROM orders__lines').map((row) => Object.values(row))).toEqual([
      [1, null],
      [1, 1],
      [0.5, null],
    ])
    expect(test.value('PRAGMA integrity_check')).toBe('ok')
  })
})

describe('the address of an API', () => {
  it.each([
    ['https://admin.example.com', 'admin.example.com'],
    ['http://admin.example.com:8080', 'admin.example.com'],
    ['https://ADMIN.Example.COM/', 'admin.example.com'],
    ['https://admin.example.com.', 'admin.example.com'],
    ['https://admin.example.com/v2/Admin/', 'admin.example.com/v2/Admin'],
    ['https://bücher.example', 'xn--bcher-kva.example'],
    ['https://xn--bcher-kva.example', 'xn--bcher-kva.example'],
    ['http://[::1]:9000/api', '[::1]/api'],
    ['http://[0:0:0:0:0:0:0:1]/api', '[::1]/api'],
    ['http://127.1', '127.0.0.1'],
  ])('%s is %s', (baseUrl, address) => {
    expect(addressOf(baseUrl)).toBe(address)
  })
})

function claimAddress({ connection }: TestMirror, baseUrl: string, accept: boolean): void {
  runRule(connection, claim(baseUrl, accept, connection.name))
}

describe('a mirror', () => {
  const remembered = "SELECT value FROM sync_settings WHERE name = 'address'"

  it('can be given any address until its first page is written', async () => {
    const test = openTestMirror()
    claimAddress(test, 'https://admn.example.com', false)
    const { saveItems } = await beginTestWalk(test, jobOf())

    claimAddress(test, 'https://admin.example.com', false)
    await saveItems('{"id":1}')

    expect(() => claimAddress(test, 'https://admin.example.com/v2', false)).toThrow(UsageError)
    expect(test.value(remembered)).toBe('admin.example.com')
  })

  it('keeps its address while a process has a job, and gives that process no other job once the address has changed', async () => {
    const test = openTestMirror()
    claimAddress(test, 'https://admin.example.com', false)
    const { lease = leaseOf(jobOf()) } = await test.store.acquire(jobOf())

    expect(() => claimAddress(test, 'https://staging.example.com', false)).toThrow(UsageError)
    await test.store.release(lease)
    claimAddress(test, 'https://staging.example.com', false)

    await expect(test.store.acquire(jobOf())).rejects.toThrow(
      /now holds the lists of staging\.example\.com, and this process was started with admin\.example\.com/,
    )
    expect(test.value('SELECT count(*) FROM sync_jobs WHERE owner IS NOT NULL')).toBe(0)
  })
})
