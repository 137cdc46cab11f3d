import { beforeEach, describe, expect, it } from 'vitest'
import { createServerForgetting } from '../../../src/store/postgres/forget.ts'
import { LATEST_VERSION, migrate } from '../../../src/store/postgres/migrations/migrate.ts'
import { BEFORE_ELEMENTS_ON_SERVER } from '../../helpers/before-elements.ts'
import { ACME } from '../../helpers/jobs.ts'
import { newSchema, openDatabase } from '../../helpers/postgres.ts'
import { openPostgresMirror, type PostgresMirror } from '../../helpers/postgres-mirror.ts'
import { runOnce } from '../../helpers/run-once.ts'
import { scriptedList } from '../../helpers/scripted-list.ts'
import { begin } from '../contract.ts'

const server = await openDatabase()

describe.skipIf(server.missing !== null)('a column that gets another type', () => {
  let mirror: PostgresMirror
  /** Roles belong to the server: each test has its own. */
  let [analyst, stranger] = ['', '']
  beforeEach(async () => {
    mirror = await openPostgresMirror(newSchema(server))
    const { schema } = mirror.address
    analyst = `analyst_${schema}`
    stranger = `stranger_${schema}`
    for (const role of [analyst, stranger]) await mirror.rows(`CREATE ROLE ${role}`)
    await page('{"id":1,"a":1,"items":[{"n":1}]}')
  })

  async function page(...texts: string[]): Promise<void> {
    const open = await begin(mirror.store)
    await open.page(...texts)
    await open.close()
    await mirror.store.release(open.lease)
  }

  const value = async (sql: string) => Object.values((await mirror.rows(sql))[0] ?? {})[0]
  const typeOf = (column: string) =>
    value(
      `SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = 'orders'::regclass AND attname = '${column}'`,
    )
  const mayRead = (role: string, view: string) =>
    value(`SELECT has_table_privilege('${role}', '${view}', 'SELECT')`)

  it('leaves the views of users as they were: options, owner, comments, and who may read what', async () => {
    await mirror.rows(`ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO ${stranger}`)
    for (const sql of [
      'CREATE VIEW mine WITH (security_barrier, security_invoker = true) AS SELECT id, a FROM orders WHERE a < 3',
      `REVOKE ALL ON mine FROM ${stranger}`,
      `GRANT SELECT (id) ON mine TO ${analyst} WITH GRANT OPTION`,
      "COMMENT ON COLUMN mine.a IS 'cents'",
      `CREATE VIEW theirs AS SELECT id FROM mine`,
      `ALTER VIEW theirs OWNER TO ${analyst}`,
    ])
      await mirror.rows(sql)

    await page('{"id":2,"a":1.5,"items":[{"n":1.5}]}')

    expect(await typeOf('a')).toBe('double precision')
    expect(
      await value(
        "SELECT array_agg(option ORDER BY option) FROM pg_class, unnest(reloptions) AS option WHERE oid = 'mine'::regclass",
      ),
    ).toEqual(['security_barrier=true', 'security_invoker=true'])
    expect(await mayRead(stranger, 'mine')).toBe(false)
    expect(await mayRead(analyst, 'mine')).toBe(false)
    expect(
      await value(`SELECT has_column_privilege('${analyst}', 'mine', 'id', 'SELECT WITH GRANT OPTION')`),
    ).toBe(true)
    expect(await value("SELECT col_description('mine'::regclass, 2)")).toBe('cents')
    expect(await value("SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 'theirs'::regclass")).toBe(
      analyst,
    )
    await page('{"id":"k","a":2}')
    expect(await mirror.rows('SELECT id, a FROM mine ORDER BY id')).toEqual([
      { id: '1', a: 1 },
      { id: '2', a: 1.5 },
      { id: 'k', a: 2 },
    ])
    expect(await mayRead(stranger, 'mine')).toBe(false)
    await mirror.rows(`ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM ${stranger}`)
  })

  it('leaves who may read our own view of an array', async () => {
    await mirror.rows(`GRANT SELECT ON orders__items TO ${analyst}`)

    await page('{"id":2,"items":[{"n":1.5}]}')

    expect(await value('SELECT count(*)::int FROM orders__items WHERE n = 1.5')).toBe(1)
    expect([await mayRead(analyst, 'orders__items'), await mayRead(stranger, 'orders__items')]).toEqual([
      true,
      false,
    ])
  })

  it.each([
    ['a materialized view', 'CREATE MATERIALIZED VIEW mine AS SELECT a FROM orders'],
    ['a policy', 'CREATE POLICY mine ON orders USING (a < 3)'],
    [
      'a view with a rule',
      'CREATE VIEW mine AS SELECT id, a FROM orders; CREATE RULE quiet AS ON INSERT TO mine DO INSTEAD NOTHING',
    ],
    [
      'a view that a function returns',
      'CREATE VIEW mine AS SELECT id, a FROM orders; CREATE FUNCTION rows_of_mine() RETURNS SETOF mine LANGUAGE sql AS $$ SELECT * FROM mine $$',
    ],
    ['a view that needs whole numbers', 'CREATE VIEW mine AS SELECT id, a % 2 AS odd FROM orders'],
    ['a condition on whole numbers', 'ALTER TABLE orders ADD CHECK (a % 2 = 0 OR a = 1)'],
  ])('stays as it is where %s depends on it, and the value goes beside it', async (_what, sql) => {
    for (const statement of sql.split('; ')) await mirror.rows(statement)

    await page('{"id":2,"a":1.5}')
    await page('{"id":3,"a":2.5}')

    expect(await typeOf('a')).toBe('bigint')
    expect(await mirror.rows('SELECT id::int, a::int, a__text FROM orders ORDER BY id')).toEqual([
      { id: 1, a: 1, a__text: null },
      { id: 2, a: null, a__text: '1.5' },
      { id: 3, a: null, a__text: '2.5' },
    ])
  })

  it('adds a column to our own view without a change to what depends on it', async () => {
    await mirror.rows('CREATE MATERIALIZED VIEW mine AS SELECT n FROM orders__items')
    await mirror.rows('ALTER VIEW orders__items SET (security_barrier)')
    const oid = await value("SELECT 'orders__items'::regclass::oid")

    await page('{"id":2,"items":[{"n":2,"more":true}]}')

    expect(await value("SELECT 'orders__items'::regclass::oid")).toBe(oid)
    expect(await value('SELECT count(*)::int FROM orders__items WHERE more = 1')).toBe(1)
    expect(await value("SELECT reloptions FROM pg_class WHERE oid = 'orders__items'::regclass")).toEqual([
      'security_barrier=true',
    ])
  })

  it('leaves the type of a column of our own view where something depends on it, and puts fractions beside it', async () => {
    await mirror.rows('CREATE MATERIALIZED VIEW mine AS SELECT n FROM orders__items')

    await page('{"id":2,"items":[{"n":1.5}]}')
    await page('{"id":3,"items":[{"n":3,"more":true}]}')

    expect(await mirror.rows('SELECT id::int FROM orders ORDER BY id')).toEqual([
      { id: 1 },
      { id: 2 },
      { id: 3 },
    ])
    expect(
      await mirror.rows('SELECT n::int, n__text, more::int FROM orders__items ORDER BY _parent_id'),
    ).toEqual([
      { n: 1, n__text: null, more: null },
      { n: null, n__text: '1.5', more: null },
      { n: 3, n__text: null, more: 1 },
    ])
  })

  it('says what keeps a key from another type', async () => {
    await mirror.rows('CREATE POLICY of_one ON orders USING (id = 1)')
    const list = scriptedList({ ids: [1], item: () => '{"id":"k1"}' })

    const { error } = await runOnce(mirror, list)

    expect(error).toMatchObject({
      code: 'DATABASE',
      message: expect.stringMatching(/policy of_one on table orders depends on them/) as string,
    })
    expect(await value('SELECT count(*)::int FROM orders')).toBe(1)
  })

  it('does not keep a mirror from a newer version, where something depends on the view of an array', async () => {
    await mirror.rows('CREATE MATERIALIZED VIEW mine AS SELECT n FROM orders__items')
    // As the version left it whose views of arrays were made by another rule.
    await mirror.server.transaction((sql) => sql.exec(BEFORE_ELEMENTS_ON_SERVER))
    await mirror.rows(`
      DROP TABLE sync_shares;
      ALTER TABLE sync_jobs DROP verifying, DROP retry_since, DROP retry_until, DROP retry_error;
      UPDATE sync_settings SET value = '6' WHERE name = 'version'`)

    await migrate(mirror.server)

    expect(await value("SELECT value FROM sync_settings WHERE name = 'version'")).toBe(String(LATEST_VERSION))
  })

  it('stays as it is where a view belongs to a role that may make no views', async () => {
    const address = newSchema(server)
    const [worker, password] = [`worker_${address.schema}`, 'only for tests']
    const owner = `owner_${address.schema}`
    await mirror.rows(`CREATE ROLE ${owner}`)
    await mirror.rows(`CREATE ROLE ${worker} LOGIN PASSWORD '${password}' IN ROLE ${owner}`)
    await mirror.rows(`CREATE SCHEMA ${address.schema} AUTHORIZATION ${worker}`)
    mirror = await openPostgresMirror({ ...address, user: worker, password: () => password })
    await page('{"id":1,"a":1}')
    await mirror.rows(`GRANT CREATE ON SCHEMA ${address.schema} TO ${owner}`)
    await mirror.rows('CREATE VIEW mine AS SELECT id, a FROM orders')
    await mirror.rows(`ALTER VIEW mine OWNER TO ${owner}`)
    await mirror.rows(`REVOKE CREATE ON SCHEMA ${address.schema} FROM ${owner}`)

    await page('{"id":2,"a":1.5}')

    expect(await typeOf('a')).toBe('bigint')
    expect(await value("SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 'mine'::regclass")).toBe(
      owner,
    )
    expect(await value('SELECT a__text FROM orders WHERE id = 2')).toBe('1.5')
  })
})

it.skipIf(server.missing !== null)(
  'a forgotten list leaves empty tables, which views of users still read',
  async () => {
    const mirror = await openPostgresMirror(newSchema(server))
    await runOnce(mirror, scriptedList({ ids: [1], item: (id) => `{"id":${id},"items":[{"n":1}]}` }))
    await mirror.rows('CREATE VIEW mine AS SELECT id FROM orders')
    const { signal } = new AbortController()
    const forgetting = createServerForgetting(mirror.server, mirror.leases, { now: mirror.clock.now, signal })

    const forgotten = await forgetting.job({ organization: ACME.id, collection: 'orders' }, false)

    expect(forgotten).toMatchObject({ owner: null })
    expect(await mirror.rows('SELECT * FROM mine')).toEqual([])
    expect((await runOnce(mirror, scriptedList({ ids: [2] }))).error).toBeNull()
    expect(await mirror.rows('SELECT id::integer FROM mine')).toEqual([{ id: 2 }])
  },
)

const OWN = {
  view: 'CREATE VIEW orders__lines AS SELECT 7 AS mine',
  table: 'CREATE TABLE orders__lines AS SELECT 7 AS mine',
}

describe.skipIf(server.missing !== null)('the name of a view', () => {
  it.each(Object.entries(OWN))(
    'stays with a %s of a user that stands in the place of ours',
    async (_kind, sql) => {
      const mirror = await openPostgresMirror(newSchema(server))
      const { rows } = mirror
      const sync = (item: (id: number) => string) => runOnce(mirror, scriptedList({ ids: [1, 2], item }))
      await sync((id) => `{"id":${id},"lines":[{"sku":"a"}]}`)
      expect(await rows('SELECT sku FROM orders__lines')).toHaveLength(2)
      await rows('DROP VIEW orders__lines')
      await rows(sql)

      const { error } = await sync((id) => `{"id":${id},"lines":[{"sku":"b","price":1}]}`)

      expect(error).toBeNull()
      expect(await rows('SELECT * FROM orders__lines')).toEqual([{ mine: 7 }])
      expect(await rows('SELECT lines FROM orders WHERE id = 1')).toEqual([
        { lines: '[{"sku":"b","price":1}]' },
      ])
    },
  )
})
