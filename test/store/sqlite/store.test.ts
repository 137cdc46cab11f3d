import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { MirrorError, UsageError } from '../../../src/errors.ts'
import { addressOf, claimAddress } from '../../../src/store/core/settings.ts'
import { runRule } from '../../../src/store/sqlite/driver.ts'
import { GLOBEX, jobOf } from '../../helpers/jobs.ts'
import { dump, openTestMirror, type TestMirror } from '../../helpers/test-mirror.ts'
import { begin, leaseOf } from '../stage.ts'

// What a page writes: test/store/contract.ts, and tables/any-pages.test.ts.

const FIRST = ['{"id":1,"total":20}', '{"id":2,"total":30}', '"no order"']

/** A page on which everything happens: a new row, a changed one, a reject, columns, a wider one, a view, another key. */
const EVENTFUL = [
  '{"id":1,"total":20.5,"note":"new column","lines":[{"sku":"a"}]}',
  '{"id":3,"total":"free"}',
  '{"id":"x-4","total":1}',
  '{"total":5}',
]

const change = ({ file }: TestMirror, sql: string) => new Database(file).exec(sql).close()

/** All that is committed, but for who has which job. */
function contents(test: TestMirror) {
  const { sync_workers: _workers, sync_jobs: jobs = [], ...tables } = dump(test)
  return { ...tables, jobs: jobs.map(({ epoch: _epoch, ...job }) => job) }
}

it.each([
  ['the ledger', 'INSERT ON sync_pages'],
  ['the counts of the run', 'UPDATE ON sync_runs'],
  ['the list of columns', 'INSERT ON sync_known_columns'],
])(
  'a page is not stored at all if %s cannot be written, and as usual once that is repaired',
  async (_what, event) => {
    const [broken, whole] = [openTestMirror(), openTestMirror()]
    const walks = [await begin(broken), await begin(whole)]
    for (const { page } of walks) await page(...FIRST)
    // A foreign trigger, which fails until a row is deleted: the schema stays as it is.
    const breaking = `
      CREATE TABLE broken AS SELECT 1 AS is_it;
      CREATE TRIGGER breaking BEFORE ${event} WHEN EXISTS (SELECT 1 FROM broken) BEGIN SELECT RAISE(ABORT, 'broken'); END
    `
    for (const test of [broken, whole]) change(test, breaking)
    const before = contents(broken)
    await expect(walks[0]?.page(...EVENTFUL)).rejects.toThrow(MirrorError)
    expect(contents(broken)).toEqual(before)
    for (const test of [broken, whole]) change(test, 'DELETE FROM broken')

    for (const walk of [await begin(broken), await begin(whole)]) await walk.page(...EVENTFUL)

    expect(contents(broken)).toEqual(contents(whole))
    expect(broken.value('PRAGMA integrity_check')).toBe('ok')
  },
)

/** Two connections to one file; each walks the orders of an organization. */
async function twoWriters() {
  const test = openTestMirror()
  const second = openTestMirror({ file: test.file, clock: test.clock })
  return { test, acme: await begin(test), globex: await begin(second, jobOf({}, GLOBEX)) }
}

describe('two processes that write to one collection', () => {
  it('number their events in the order in which they wrote them, whatever their clocks said, and a reader of two at a time misses none', async () => {
    const { test, acme, globex } = await twoWriters()
    const written: string[] = []
    for (const a of [1, 2, 3])
      for (const { page, lease } of [acme, globex]) {
        const texts = [a + 2, 1, 2].map((id) => `{"id":${id},"a":${a}}`)
        await page(...texts)
        written.push(...texts.map((text) => lease.job.organization.id + text))
        test.clock.advance(-1000)
      }

    const read: string[] = []
    const greatest = Number(test.value('SELECT max(seq) FROM orders_changes'))
    for (let last = 0; last < greatest;) {
      const sql = `SELECT seq, _organization_id || after AS text FROM orders_changes WHERE seq > ${last}`
      for (const { seq, text } of test.rows(`${sql} ORDER BY seq LIMIT 2`)) {
        last = Number(seq)
        read.push(String(text))
      }
    }
    expect(read).toEqual(written)
  })

  it('both notice that a column became REAL, a key TEXT, and a view wider', async () => {
    const { test, acme, globex } = await twoWriters()
    await acme.page('{"id":1,"a":1,"lines":[{"n":1}]}')
    await globex.page('{"id":1,"a":1}')
    await acme.page('{"id":"x","a":0.5,"lines":[{"n":1,"m":1}]}')

    await globex.page('{"id":2,"a":7,"lines":[{"n":0.5}]}')

    const values = (sql: string) => test.rows(sql).map((row) => JSON.stringify(Object.values(row)))
    expect(values('SELECT id, a FROM orders')).toEqual(['["1",1]', '["1",1]', '["x",0.5]', '["2",7]'])
    expect(values('SELECT n, m FROM orders__lines')).toEqual(['[1,null]', '[1,1]', '[0.5,null]'])
    expect(test.value('PRAGMA integrity_check')).toBe('ok')
  })
})

const claim = ({ connection }: TestMirror, host: string) =>
  runRule(connection, claimAddress(`https://${host}.example.com`, false, connection.name))

describe('the address of an API', () => {
  it.each([
    ['http://admin.example.com:8080', 'admin.example.com'],
    ['https://admin.example.com.', 'admin.example.com'],
    ['https://admin.example.com/v2/Admin/', 'admin.example.com/v2/Admin'],
    ['http://[0:0:0:0:0:0:0:1]:9000/api', '[::1]/api'],
  ])('%s is %s', (baseUrl, address) => {
    expect(addressOf(baseUrl)).toBe(address)
  })

  it('can be any one until its first page is written', async () => {
    const test = openTestMirror()
    const { page } = await begin(test)
    claim(test, 'admn')

    claim(test, 'admin')
    await page('{"id":1}')

    expect(() => claim(test, 'staging')).toThrow(UsageError)
    expect(test.value("SELECT value FROM sync_settings WHERE name = 'address'")).toBe('admin.example.com')
  })

  it('stays while a process has a job, and gives that process no other job once it has changed', async () => {
    const test = openTestMirror()
    claim(test, 'admin')
    const lease = await leaseOf(test.store)

    expect(() => claim(test, 'staging')).toThrow(UsageError)
    await test.store.release(lease)
    claim(test, 'staging')

    await expect(leaseOf(test.store)).rejects.toThrow(
      /now holds the lists of staging\.example\.com, and this process was started with admin\.example\.com/,
    )
    expect(test.value('SELECT count(*) FROM sync_jobs WHERE owner IS NOT NULL')).toBe(0)
  })
})
