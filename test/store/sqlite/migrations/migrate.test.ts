import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { tablesSql } from '../../../../src/store/core/declarations.ts'
import { type Connection, SQLITE } from '../../../../src/store/sqlite/driver.ts'
import { openForReading } from '../../../../src/store/sqlite/file/open.ts'
import { openForWriting } from '../../../../src/store/sqlite/file/open-for-writing.ts'
import { LATEST_VERSION } from '../../../../src/store/sqlite/migrations/migrate.ts'
import { readFileFacts } from '../../../../src/store/sqlite/read/status.ts'
import { type CoverageState, startCheckpoint, type Why } from '../../../../src/sync/coverage/state.ts'
import type { Walk } from '../../../../src/sync/store.ts'
import { beforeElements } from '../../../helpers/before-elements.ts'
import { beforeSeq } from '../../../helpers/before-seq.ts'
import { createClock } from '../../../helpers/clock.ts'
import { deathsIn } from '../../../helpers/deaths.ts'
import { jobOf } from '../../../helpers/jobs.ts'
import { OUTSIDE_READERS } from '../../../helpers/outside-readers.ts'
import { hearing, runOnce } from '../../../helpers/run-once.ts'
import { scriptedList, upTo } from '../../../helpers/scripted-list.ts'
import { tempFolder } from '../../../helpers/temp-folder.ts'
import { beginTestWalk, openTestMirror } from '../../../helpers/test-mirror.ts'

const ROOT = path.resolve(import.meta.dirname, '../../../..')
const MIGRATIONS = path.join(ROOT, 'src/store/sqlite/migrations')

type Rows = Record<string, unknown>[]

const tablesOf = (connection: Connection) =>
  connection
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name")
    .pluck()
    .all() as string[]

const rowsOf = (connection: Connection, table: string) =>
  (connection.prepare(`SELECT * FROM "${table}" ORDER BY 1, 2`).all() as Rows).filter(
    ({ name }) => name !== 'views',
  )

/** The SQL of the first migrations, in their order. */
function stepsUpTo(version: number): string[] {
  const files = fs.readdirSync(MIGRATIONS).filter((file) => file.endsWith('.sql'))
  return files
    .toSorted()
    .slice(0, version)
    .map((file) => fs.readFileSync(path.join(MIGRATIONS, file), 'utf8'))
}

/**
 * A mirror as an earlier version left it: some rows in every table, a collection, and views of a user's.
 * Closed.
 */
function mirrorOfVersion(version: number): string {
  const file = path.join(tempFolder(), 'mirror.db')
  const connection = new Database(file)
  connection.pragma('application_id = 0x61646d72')
  connection.pragma('journal_mode = WAL')
  for (const step of stepsUpTo(version)) connection.exec(step)
  connection.pragma(`user_version = ${version}`)
  const shape = { name: 'orders', keyColumns: ['id'], keyTypes: ['TEXT'] as const, columns: [] }
  for (const sql of tablesSql(SQLITE, shape)) connection.exec(sql)
  if (version < 11) beforeSeq(connection)
  for (const table of tablesOf(connection)) for (const number of [1, 2, 3]) fill(connection, table, number)
  connection.exec(
    "DELETE FROM sync_collections; INSERT INTO sync_collections (name, key) VALUES ('orders', '[\"id\"]')",
  )
  if (version >= 11) connection.exec("INSERT INTO sync_seq VALUES ('orders', 3)")
  connection.exec(
    // As some version may have made it.
    'CREATE VIEW sync_status AS SELECT organization_id, collection, rows FROM sync_jobs; CREATE VIEW my_rejects AS SELECT * FROM sync_rejects; CREATE VIEW broken AS SELECT * FROM gone',
  )
  connection.close()
  return file
}

function fill(connection: Connection, table: string, number: number): void {
  const columns = connection.pragma(`table_info("${table}")`) as { name: string; type: string }[]
  const values = columns.map(({ name, type }) => (type === 'TEXT' ? `${name} ${number}` : number))
  connection.prepare(`INSERT INTO "${table}" VALUES (${columns.map(() => '?').join(', ')})`).run(values)
}

/** All rows of the earlier tables, except the page ledger: that of the first versions could not be kept. */
function contents(file: string, tables?: readonly string[]): Record<string, Rows> {
  const connection = new Database(file, { readonly: true })
  try {
    const names = (tables ?? tablesOf(connection)).filter((name) => name !== 'sync_pages')
    return Object.fromEntries(names.map((name) => [name, rowsOf(connection, name)]))
  } finally {
    connection.close()
  }
}

/** Columns that are gone, and what is worked out again. */
const NOT_KEPT = ['judged_walk', 'holds', 'columns_run']

/** A row with the names that its columns have now, and without those that are gone. */
function asNow(row: Rows[number]): Rows[number] {
  const columns = Object.entries(row).filter(([name]) => !NOT_KEPT.includes(name))
  return Object.fromEntries(columns.map(([name, value]) => [name === 'mark' ? 'key' : name, value]))
}

function expectMigrated(file: string, before: Record<string, Rows>): void {
  openForWriting(file).close()
  const { sync_seen_since: _, ...kept } = before
  const after = contents(file, Object.keys(kept))
  for (const [table, rows] of Object.entries(kept)) expect(after[table], table).toMatchObject(rows.map(asNow))
  const connection = new Database(file, { readonly: true })
  expect(connection.pragma('user_version', { simple: true })).toBe(LATEST_VERSION)
  expect(connection.pragma('integrity_check', { simple: true })).toBe('ok')
  expect(tablesOf(connection).filter((name) => name.startsWith('_'))).toEqual([])
  expect(connection.prepare('SELECT count(*) FROM my_rejects').pluck().get()).toBe(3)
  connection.close()
}

function versionOf(file: string): number {
  const connection = new Database(file)
  try {
    return connection.pragma('user_version', { simple: true }) as number
  } finally {
    connection.close()
  }
}

/** A mirror of an earlier version, with this in it. */
function olderMirror(sql: string, version = 4): string {
  const file = path.join(tempFolder(), 'mirror.db')
  const older = new Database(file)
  older.pragma('application_id = 0x61646d72')
  for (const step of stepsUpTo(version)) older.exec(step)
  older.pragma(`user_version = ${version}`)
  older.exec(sql).close()
  return file
}

/** A walk with an account as it was then. */
function walkSql(status: string, coverage: string): string {
  return `
    INSERT INTO sync_walks (
      organization_id, collection, kind, filters, status, coverage, passes, started_at, updated_at, origin, path, first_page, account
    ) VALUES ('1', 'orders', 'full', '{}', '${status}', ${coverage}, 1, 't', 't', 'sync', '/orders', 1, '{"ask":null,"account":{"moved":true}}');
  `
}

function missing(key: string, state: string, walk: number): string {
  return `('1', 'orders', '${key}', '${state}', ${walk}, 't', 'removed')`
}

describe('a mirror whose walks were judged row by row', () => {
  it('keeps what walks missed, but for a walk that was being judged, and trusts no open walk that another overlapped', () => {
    const file = olderMirror(
      `
      INSERT INTO organizations (id, name, configured) VALUES ('1', 'acme', 1);
      INSERT INTO sync_jobs (organization_id, collection, configured, rows, removals_held, judged_walk)
      VALUES ('1', 'orders', 1, 9, 1, 3);
      ${walkSql('complete', "'steady'")} ${walkSql('open', 'NULL')} ${walkSql('open', 'NULL')}
      INSERT INTO sync_missing VALUES ${missing('a', 'missed', 1)}, ${missing('b', 'due', 1)},
        ${missing('c', 'held', 3)}, ${missing('d', 'missed', 3)}, ${missing('e', 'due', 3)};
      INSERT INTO sync_seen_since VALUES (2, 'x');
    `,
      6,
    )

    const connection = openForWriting(file)

    const all = (sql: string) => connection.prepare(sql).all()
    expect(all('SELECT key, state, missed_by AS walk FROM sync_missing ORDER BY key')).toEqual([
      { key: 'a', state: 'missed', walk: 1 },
      { key: 'b', state: 'removable', walk: 1 },
      { key: 'c', state: 'held', walk: 3 },
    ])
    expect(all('SELECT id FROM sync_walks WHERE untrusted IS NOT NULL')).toEqual([{ id: 2 }])
    expect(all('SELECT rows, removals_held FROM sync_jobs')).toEqual([{ rows: 9, removals_held: 1 }])
    connection.close()
  })
})

/** The last item of page 4, when the list had 15. */
const FRONTIER = { page: 4, place: { segment: 4, position: 2 }, index: 11, total: 15 }
const LOOK = { anchor: 1, upTo: 4, low: 1, high: 3, left: 1, rounds: 1, fails: 0, waiting: true }
const READ = { firstTotal: 15, passTotal: 15, lastPage: 5, firstLastPage: 5, perPage: 3, passAnswers: 4 }

/** A walk's state as version 6 wrote it, and as it is now. */
function stateOfVersion6(): { before: object; now: CoverageState } {
  const now: CoverageState = {
    ...startCheckpoint(1).state,
    ...READ,
    frontier: FRONTIER,
    lookBack: { frontier: FRONTIER, ...LOOK },
    relocated: 1,
    unexplained: 2,
    carried: 3,
    pagesWithoutNews: 4,
    repeatedAcrossPages: true,
    closed: { spotCheck: true, front: false, samples: false },
  }
  const { frontier, relocated, unexplained, carried, pagesWithoutNews, repeatedAcrossPages, ...same } = now
  const before = {
    ...same,
    edge: frontier,
    lookBack: { edge: frontier, ...LOOK },
    wanderers: relocated,
    unpaid: unexplained,
    owed: carried,
    stale: pagesWithoutNews,
    crossed: repeatedAcrossPages,
    closed: { still: true, front: false, samples: false },
  }
  return { before, now }
}

describe('a mirror with an open walk whose state has the names of version 6', () => {
  it.each<[string, number | null, Why]>([
    ['again', 5, 'reread'],
    ['still', null, 'spot-check'],
  ])('continues a walk that asks for a page %s', async (former, nextPage, why) => {
    const { before, now } = stateOfVersion6()
    const question = { page: 4, until: null, before: null }
    const account = JSON.stringify({ ask: { why: former, ...question }, account: before })
    const { organization, collection } = jobOf()
    const clock = createClock()
    const at = new Date(clock.now()).toISOString()
    const page = (number: number, reason: string) => {
      const keys = upTo(12).slice(number * 3 - 3, number * 3)
      return `(1, ${number}, 1, ${number}, 15, '${JSON.stringify(keys.map(String))}', '${at}', '${reason}', NULL)`
    }
    const file = olderMirror(
      `
      INSERT INTO sync_walks (
        organization_id, collection, kind, filters, status, next_page, passes, pages, rows_seen, started_at, updated_at,
        origin, path, first_page, account
      ) VALUES (
        '${organization.id}', 'orders', 'full', '{}', 'open', ${nextPage}, 1, 4, 12, '${at}', '${at}',
        'sync', '${collection.path}', 1, '${account}'
      );
      INSERT INTO sync_pages VALUES ${page(1, 'forward')}, ${page(2, 'again')}, ${page(3, 'still')}, ${page(4, 'look')};
    `,
      6,
    )
    const test = openTestMirror({ file, clock })
    const list = scriptedList({ ids: upTo(15) })
    const started: Walk[] = []

    const result = await runOnce(test, list, {
      observe: hearing({ start: ({ walk }) => started.push(walk) }),
    })

    expect(started).toMatchObject([{ id: 1, resumed: true }])
    expect(started[0]?.checkpoint).toEqual({ pass: 1, nextPage, ask: { why, ...question }, state: now })
    expect(list.asked[0]).toBe(4)
    expect(result.error).toBeNull()
    const reasons = test.rows('SELECT why FROM sync_pages WHERE ordinal <= 5 ORDER BY ordinal')
    expect(reasons.map(({ why: reason }) => reason)).toEqual(['forward', 'reread', 'spot-check', 'look', why])
    expect(test.value('SELECT account FROM sync_walks')).not.toMatch(
      /"(account|edge|owed|unpaid|stale|crossed)"/,
    )
  })
})

describe('a mirror of an earlier version', () => {
  const EARLIER = Array.from({ length: LATEST_VERSION - 1 }, (_, index) => index + 1)

  it.each(EARLIER)('%i keeps all its rows', (version) => {
    const file = mirrorOfVersion(version)

    expectMigrated(file, contents(file))
  })

  it('whose tables a user has dropped gets them again', () => {
    const file = mirrorOfVersion(9)
    new Database(file).exec('DROP TABLE orders; DROP TABLE orders_history').close()

    const connection = openForWriting(file)

    expect(connection.prepare('SELECT count(*) FROM orders').pluck().get()).toBe(0)
    expect(connection.prepare('SELECT count(*) FROM orders_changes').pluck().get()).toBe(3)
    connection.close()
  })

  it('keeps all its rows when a process dies at any moment', async () => {
    const file = mirrorOfVersion(LATEST_VERSION - 2)
    const before = contents(file)

    const { deaths } = await deathsIn(path.dirname(file), () => openForWriting(file).close())

    const versions = deaths.map((death) => {
      const left = path.join(tempFolder(), 'mirror.db')
      death.leaveIn(path.dirname(left))
      const version = versionOf(left)
      if (version < LATEST_VERSION) expect(contents(left), death.place).toEqual(before)
      expectMigrated(left, before)
      return version
    })
    // Nothing is in the files before the one commit.
    expect(versions).toContain(LATEST_VERSION)
  })
})

describe('the views that every mirror has', () => {
  const NAMES = ['sync_columns', 'sync_help', 'sync_status']
  const viewsOf = (file: string) => {
    const connection = new Database(file, { readonly: true })
    const rows = connection.prepare(
      "SELECT name, sql FROM sqlite_schema WHERE name LIKE 'sync@_%' ESCAPE '@'",
    )
    const found = (rows.all() as { name: string; sql: string }[]).filter(({ name }) => NAMES.includes(name))
    connection.close()
    return Object.fromEntries(found.map(({ name, sql }) => [name, sql]))
  }

  it('are the same in a mirror of an earlier version and in a new one', () => {
    const [older, fresh] = [olderMirror('', 8), path.join(tempFolder(), 'mirror.db')]

    for (const file of [older, fresh]) openForWriting(file).close()

    expect(Object.keys(viewsOf(older)).toSorted()).toEqual(NAMES)
    expect(viewsOf(older)).toEqual(viewsOf(fresh))
  })

  it('are made anew where their text has changed, but for one of a later version', () => {
    const file = olderMirror('')
    openForWriting(file).close()
    const before = viewsOf(file)
    const connection = openForWriting(file)
    connection.exec(`
      DROP VIEW sync_status;
      CREATE VIEW sync_status AS SELECT 1 AS rows;
      DROP VIEW sync_columns;
      CREATE VIEW sync_columns AS SELECT 1 AS filled, 2 AS later;
      UPDATE sync_settings SET value = 'other' WHERE name = 'views';
    `)
    connection.close()

    openForWriting(file).close()

    expect(viewsOf(file)).toEqual({
      ...before,
      sync_columns: 'CREATE VIEW sync_columns AS SELECT 1 AS filled, 2 AS later',
    })
  })
})

describe('a table WITHOUT ROWID', () => {
  it('has the columns of its key first, as sqlite3 of Debian 12 requires', async () => {
    const test = openTestMirror()
    const { saveItems } = await beginTestWalk(test, jobOf())
    await saveItems('{"no":"key"}', '{"id":1,"lines":[{"sku":"a"}]}')

    const tables = test.rows("SELECT name FROM pragma_table_list WHERE schema = 'main' AND wr = 1")

    expect(tables).toContainEqual({ name: 'sync_rejects' })
    for (const { name } of tables) {
      const places = test.rows('SELECT pk FROM pragma_table_info(?) ORDER BY cid', name).map(({ pk }) => pk)
      const key = places.filter((place) => place !== 0)
      expect(places.slice(0, key.length), String(name)).toEqual(key.map((_, index) => index + 1))
    }
  })

  it.each(OUTSIDE_READERS)('is sound for $name', async ({ read }) => {
    const file = mirrorOfVersion(LATEST_VERSION - 1)
    openForWriting(file).close()

    expect(read(file, 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
    expect(read(file, 'SELECT count(*) AS rejects FROM sync_rejects')).toEqual([{ rejects: 3 }])
  })
})

describe('the views of arrays of an earlier version', () => {
  it('get the rules of columns, keep their types, and tell lists from texts', async () => {
    const test = openTestMirror()
    const { saveItems } = await beginTestWalk(test, jobOf())
    await saveItems(
      '{"id":1,"lines":[{"n":1,"b":true,"t":"x"}],"note":"[x]","good":[{"n":1}]}',
      '{"id":2,"lines":"[{\\"n\\":7}]","good":[{"n":"2"}]}',
    )
    beforeElements(test.connection)
    test.connection.exec(`
      DROP VIEW orders__lines;
      CREATE VIEW "orders__lines" AS\nSELECT\n  t."_organization_id" AS "_organization_id", 1 AS older FROM orders AS t;
      DROP VIEW orders__good;
      PRAGMA user_version = 15;
    `)
    const connection = openForReading(test.file, true) ?? expect.fail('no mirror')
    expect(readFileFacts(connection, test.file)).toMatchObject({
      jobs: [{ rows: 2 }, {}],
      columnTroubles: [],
    })
    connection.close()

    openForWriting(test.file).close()

    const columns = `SELECT "column", type, role, wide FROM sync_view_columns WHERE view = 'orders__lines' ORDER BY rowid`
    expect(test.rows(columns)).toEqual([
      { column: 'n', type: 'INTEGER', role: 'value', wide: 0 },
      { column: 'b', type: 'INTEGER', role: 'value', wide: 1 },
      { column: 't', type: 'TEXT', role: 'value', wide: 0 },
    ])
    expect(
      test.rows(`SELECT "column" FROM sync_known_columns WHERE wide = 1 ORDER BY 1`).map((row) => row.column),
    ).toEqual(['lines', 'note'])
    expect(test.rows('SELECT _parent_id, n, b, t FROM orders__lines')).toEqual([
      { _parent_id: 1, n: 1, b: 1, t: 'x' },
    ])
    expect(test.rows('SELECT n FROM orders__good')).toEqual([{ n: 1 }, { n: 2 }])
    await saveItems('{"id":3,"lines":[{"t":true,"b":1.5}]}')
    expect(test.rows('SELECT b, b__text, t, t__text FROM orders__lines WHERE _parent_id = 3')).toEqual([
      { b: null, b__text: '1.5', t: null, t__text: 'true' },
    ])
  })
})
