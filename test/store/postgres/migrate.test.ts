import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { LATEST_VERSION, migrate } from '../../../src/store/postgres/migrations/migrate.ts'
import { connectServer } from '../../../src/store/postgres/server/server.ts'
import { BEFORE_ELEMENTS_ON_SERVER } from '../../helpers/before-elements.ts'
import { newSchema, openDatabase, openReader } from '../../helpers/postgres.ts'
import { openPostgresMirror } from '../../helpers/postgres-mirror.ts'
import { afterRealTime } from '../../helpers/real-time.ts'
import { runOnce } from '../../helpers/run-once.ts'
import { scriptedList } from '../../helpers/scripted-list.ts'

const FOLDER = path.resolve(import.meta.dirname, '../../../src/store/postgres/migrations')

const server = await openDatabase()

const canRead = (role: string) => `has_table_privilege('${role}', 'sync_columns', 'SELECT')`

/** A schema as a released version made it. */
async function openSchema(steps: readonly string[]) {
  const address = newSchema(server)
  const { signal } = new AbortController()
  const own = await connectServer(address, {
    now: Date.now,
    sleep: async () => {},
    after: afterRealTime,
    signal,
  })
  onTestFinished(() => own.close())
  await own.transaction(async (sql) => {
    await sql.exec(`CREATE SCHEMA ${address.schema}`)
    for (const step of steps) await sql.exec(fs.readFileSync(path.join(FOLDER, step), 'utf8'))
    await sql.rows("INSERT INTO sync_settings (name, value) VALUES ('version', $1)", [String(steps.length)])
  })
  return { address, own }
}

describe.skipIf(server.missing !== null)('a schema of an older version', { timeout: 60_000 }, () => {
  it('lets the requests of older workers pass while somebody reads its lists for long', async () => {
    const { address, own } = await openSchema([
      '0001-tables-of-the-interface.sql',
      '0002-tokens-of-organizations.sql',
    ])
    const [reader, rows] = [await openReader(address), await openReader(address)]
    await reader('BEGIN')
    await reader('SELECT 1 FROM sync_jobs')
    const migrated = migrate(own)
    const lockOf = (table: string) =>
      `SELECT granted FROM pg_locks WHERE relation = '${address.schema}.${table}'::regclass AND mode = 'AccessExclusiveLock'`
    await expect.poll(() => rows(lockOf('sync_jobs'))).toEqual([{ granted: false }])

    expect(await rows(lockOf('sync_gates'))).toEqual([])
    await reader('COMMIT')
    await migrated
    expect(await rows("SELECT value FROM sync_settings WHERE name = 'version'")).toEqual([
      { value: String(LATEST_VERSION) },
    ])
  })

  it('lets those read sync_columns as a view who could read it as a table, and nobody else', async () => {
    const { address, own } = await openSchema([
      '0001-tables-of-the-interface.sql',
      '0002-tokens-of-organizations.sql',
      '0003-refreshes-of-many-workers.sql',
    ])
    const rows = await openReader(address)
    const [reads, may] = [`reads_${address.schema}`, `may_not_${address.schema}`]
    onTestFinished(async () => {
      await rows(`DROP OWNED BY ${reads}, ${may}; DROP ROLE ${reads}; DROP ROLE ${may}`)
    })
    await rows(`
      CREATE ROLE ${reads}; CREATE ROLE ${may};
      GRANT SELECT ON sync_columns TO ${reads};
      ALTER DEFAULT PRIVILEGES IN SCHEMA ${address.schema} GRANT SELECT ON TABLES TO ${may};
      CREATE VIEW mine AS SELECT "column" FROM sync_columns;
      INSERT INTO sync_columns (collection, "column", path, type, role, first_seen_at, last_changed_at)
      VALUES ('orders', 'a', '$.a', 'TEXT', 'value', now(), now())
    `)

    await migrate(own)

    expect(await rows(`SELECT ${canRead(reads)} AS reads, ${canRead(may)} AS may`)).toEqual([
      { reads: true, may: false },
    ])
    expect(await rows('SELECT "column" FROM mine')).toEqual([{ column: 'a' }])
    expect(await rows('SELECT "column", type, filled FROM sync_columns')).toEqual([
      { column: 'a', type: 'TEXT', filled: null },
    ])
  })

  it('has its own views made anew, with who may read them and what reads them', async () => {
    const mirror = await openPostgresMirror(newSchema(server))
    const columns =
      'SELECT string_agg(attname, $$ $$ ORDER BY attnum) AS names FROM pg_attribute WHERE attnum > 0 AND attrelid = '
    const names = () => mirror.rows(`${columns}'sync_status'::regclass`)
    const before = await names()
    await mirror.server.transaction((sql) =>
      sql.exec(`
        DROP VIEW sync_status;
        CREATE VIEW sync_status WITH (security_invoker = true) AS
        SELECT organization_id, collection AS organization, rows AS removed FROM sync_jobs;
        GRANT SELECT ON sync_status TO pg_monitor;
        CREATE VIEW mine AS SELECT organization FROM sync_status;
        UPDATE sync_settings SET value = 'other' WHERE name = 'views'
      `),
    )

    await migrate(mirror.server)
    // It has a column that ours has not, so a later version made it.
    expect(await names()).toEqual([{ names: 'organization_id organization removed' }])
    await mirror.server.transaction((sql) =>
      sql.exec(`
        ALTER VIEW sync_status RENAME COLUMN removed TO rows;
        UPDATE sync_settings SET value = 'other' WHERE name = 'views'
      `),
    )
    await migrate(mirror.server)

    expect(await names()).toEqual(before)
    const rights =
      "SELECT reloptions AS options, has_table_privilege('pg_monitor', oid, 'SELECT') AS may FROM pg_class"
    expect(await mirror.rows(`${rights} WHERE oid = 'sync_status'::regclass`)).toEqual([
      { options: ['security_invoker=true'], may: true },
    ])
    expect(await mirror.rows('SELECT organization FROM mine ORDER BY 1')).toEqual([
      { organization: 'acme' },
      { organization: 'globex' },
    ])
  })

  it('numbers older events by their times, newer ones above, and keeps who may read the view', async () => {
    const mirror = await openPostgresMirror(newSchema(server))
    const saved = async (a: number) => {
      const { source } = scriptedList({ ids: [1], item: () => `{"id":1,"a":${a}}` })
      expect((await runOnce(mirror, { source })).error).toBeNull()
    }
    await saved(1)
    await mirror.server.transaction((sql) =>
      sql.exec(`
        ${BEFORE_ELEMENTS_ON_SERVER}
        DROP VIEW orders_changes;
        CREATE VIEW orders_changes AS SELECT 1 AS older;
        COMMENT ON VIEW orders_changes IS 'One row an event of orders, of history and live rows.';
        GRANT SELECT ON orders_changes TO pg_monitor;
        ALTER TABLE orders_raw DROP COLUMN _first_seen_seq, DROP COLUMN _changed_seq;
        ALTER TABLE orders_history DROP COLUMN _valid_from_seq, DROP COLUMN _valid_to_seq;
        DROP TABLE sync_seq, sync_shares;
        ALTER TABLE sync_jobs
          DROP COLUMN failing_since, DROP COLUMN failing_by, DROP COLUMN failing_code, DROP COLUMN failing_message,
          DROP COLUMN verifying, DROP COLUMN retry_since, DROP COLUMN retry_until, DROP COLUMN retry_error;
        UPDATE sync_settings SET value = '4' WHERE name = 'version'
      `),
    )

    await migrate(mirror.server)
    mirror.clock.advance(-3_600_000)
    await saved(2)

    const events = await mirror.rows('SELECT change, seq FROM orders_changes ORDER BY seq')
    expect(events.map(({ change }) => change)).toEqual(['added', 'changed'])
    expect(Number(events[1]?.seq)).toBe(Number(events[0]?.seq) + 1)
    const may = "SELECT has_table_privilege('pg_monitor', 'orders_changes', 'SELECT') AS may"
    expect(await mirror.rows(may)).toEqual([{ may: true }])
  })

  it('has the views of its arrays led on, with lists told from texts, and who may read them', async () => {
    const mirror = await openPostgresMirror(newSchema(server))
    const saved = async (...texts: string[]) => {
      const { source } = scriptedList({
        ids: texts.map((_, index) => index + 1),
        item: (id) => texts[id - 1] ?? '',
      })
      expect((await runOnce(mirror, { source })).error).toBeNull()
    }
    const texts = [
      '{"id":1,"lines":[{"n":1,"b":true,"t":"x"}],"note":"[x]","good":[{"n":1}]}',
      '{"id":2,"lines":"[{\\"n\\":7}]","good":[{"n":"2"}]}',
    ]
    await saved(...texts)
    await mirror.server.transaction((sql) =>
      sql.exec(`
        ${BEFORE_ELEMENTS_ON_SERVER}
        DROP VIEW orders__lines;
        CREATE VIEW orders__lines AS
        SELECT t._organization_id, t.id AS _parent_id, 0::bigint AS _index, 1::bigint AS n, 1::bigint AS b, 'x'::text AS t
        FROM orders AS t WHERE json_list(t.lines) IS NOT NULL;
        GRANT SELECT ON orders__lines TO pg_monitor;
        CREATE VIEW mine AS SELECT sum(n) AS n FROM orders__lines;
        UPDATE sync_known_columns SET wide = 0;
        UPDATE sync_settings SET value = '10' WHERE name = 'version'
      `),
    )

    await migrate(mirror.server)

    expect(
      await mirror.rows(
        `SELECT "column", type, role, wide::int FROM sync_view_columns WHERE view = 'orders__lines' ORDER BY sequence`,
      ),
    ).toEqual([
      { column: 'n', type: 'INTEGER', role: 'value', wide: 0 },
      { column: 'b', type: 'INTEGER', role: 'value', wide: 1 },
      { column: 't', type: 'TEXT', role: 'value', wide: 0 },
    ])
    expect(await mirror.rows('SELECT "column" FROM sync_known_columns WHERE wide = 1 ORDER BY 1')).toEqual([
      { column: 'lines' },
      { column: 'note' },
    ])
    expect(await mirror.rows('SELECT _parent_id::int, n::int, b::int, t FROM orders__lines')).toEqual([
      { _parent_id: 1, n: 1, b: 1, t: 'x' },
    ])
    expect(await mirror.rows('SELECT n::int FROM orders__good ORDER BY 1')).toEqual([{ n: 1 }, { n: 2 }])
    expect(await mirror.rows('SELECT n::int FROM mine')).toEqual([{ n: 1 }])
    const may = "SELECT has_table_privilege('pg_monitor', 'orders__lines', 'SELECT') AS may"
    expect(await mirror.rows(may)).toEqual([{ may: true }])
    await saved(...texts, '{"id":3,"lines":[{"t":true,"b":1.5}]}')
    expect(
      await mirror.rows('SELECT b::int, b__text, t, t__text FROM orders__lines WHERE _parent_id = 3'),
    ).toEqual([{ b: null, b__text: '1.5', t: null, t__text: 'true' }])
  })
})
