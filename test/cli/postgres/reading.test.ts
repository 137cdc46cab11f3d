import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { duckdb } from '../../helpers/duckdb.ts'
import { pageOf, serve } from '../../helpers/list-server.ts'
import { ACME, onPostgres, type PostgresWorkspace } from '../../helpers/on-postgres.ts'
import { openDatabase } from '../../helpers/postgres.ts'
import { createWorkspace, variable } from '../../helpers/workspace.ts'

const server = await openDatabase()

const ITEMS = [
  { id: 1, total: 1.5, lines: [{ sku: 'a' }, { sku: 'b' }] },
  { id: 2, total: 2, note: 'b, "c"' },
]

async function synced(more: object = {}): Promise<PostgresWorkspace> {
  const { url } = await serve((asked) => pageOf(ITEMS, asked))
  const postgres = onPostgres(server, url, more)
  expect(await postgres.run(['sync'])).toMatchObject({ code: 0 })
  return postgres
}

describe.skipIf(server.missing !== null)('reading a PostgreSQL mirror', () => {
  it('writes CSV, and Parquet with the types of the values that a query works out', async () => {
    const { run, workspace, address } = await synced()
    const csv = ['--format', 'csv']
    expect(await run(['query', 'SELECT id, total FROM orders ORDER BY id', ...csv])).toMatchObject({
      code: 0,
      stdout: 'id,total\n1,1.5\n2,2\n',
    })
    const typed =
      'SELECT sum(id) AS sum, avg(id) AS mean, max(_changed_at) AS at, true AS yes, 9007199254740993 AS exact, max(note) AS note FROM orders'
    const through = ['sh', '-c', `exec "$@" > ${workspace.file('typed.parquet')}`, 'sh']
    const env = { DB_PASSWORD: address.password() ?? '' }
    await workspace.run(['query', typed, '--format', 'parquet'], { env, through })
    const types = await duckdb(workspace.file, "SELECT column_type FROM (DESCRIBE FROM 'typed.parquet')")
    expect(types.flat()).toEqual(['BIGINT', 'DOUBLE', 'VARCHAR', 'BIGINT', 'BIGINT', 'VARCHAR'])
    expect(await duckdb(workspace.file, "SELECT sum, mean, yes, exact, note FROM 'typed.parquet'")).toEqual([
      [3n, 1.5, 1n, 9007199254740993n, 'b, "c"'],
    ])
  })

  it('before there is a mirror, SQL that is wrong ends with 2 and sound SQL with 4, as beside a file', async () => {
    const onServer = onPostgres(server, 'http://127.0.0.1:9')
    const file = createWorkspace({ baseUrl: 'http://127.0.0.1:9', organizations: [ACME] })
    const cases: [sql: string, code: number][] = [
      ['SELEC 1', 2],
      ['SELECT id FROM', 2],
      ["EXPLAIN SELECT 'a' FROM orders WHERE", 2],
      ['DELETE FROM orders', 2],
      ['/* of */ -- all\ndrop TABLE orders', 2],
      ['SELECT 1; SELECT 2', 2],
      ['SELECT :id', 2],
      ['SELECT 1', 4],
      ['SELECT id, missing FROM orders', 4],
      ['SELECT unknown(1)', 4],
      ['EXPLAIN SELECT id FROM orders', 4],
    ]
    for (const [sql, code] of cases) {
      const says = code === 4 ? /there is no mirror at .* yet/ : /SQL|query only reads/
      const stderr = expect.stringMatching(says) as string
      expect([sql, await onServer.run(['query', sql])]).toMatchObject([sql, { code, stdout: '', stderr }])
      expect([sql, await file.run(['query', sql])]).toMatchObject([sql, { code, stdout: '' }])
    }
  })

  it('shows sums and means as numbers, and times and numbers that JSON lacks as text', async () => {
    const { run } = await synced()
    const sql = `
      SELECT sum(id) AS sum, avg(id) AS mean, 1e20::numeric AS large, 20.0 AS whole, 'NaN'::float8 AS nan,
        'infinity'::timestamptz AS never, '0044-03-15 12:00+00 BC'::timestamptz AS ides, '2026-01-02'::timestamptz AS day
      FROM orders`

    expect((await run(['query', sql, '--format', 'ndjson'])).stdout).toBe(
      '{"sum":3,"mean":1.5,"large":"100000000000000000000","whole":20,"nan":"NaN",' +
        '"never":"infinity","ides":"0044-03-15 12:00:00+00 BC","day":"2026-01-02T00:00:00.000Z"}\n',
    )
  })

  it('knows a materialized view of the user beside those of a collection, and no sequence', async () => {
    const { run, rows } = await synced()
    const read = await rows()
    await read('CREATE MATERIALIZED VIEW orders__mine AS SELECT _organization_id, id FROM orders')
    await read('CREATE SEQUENCE orders__numbers')

    expect(await run(['export', 'orders__mine', '--format', 'ndjson'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('"id":2}\n') as string,
    })
    expect(await run(['export', 'orders__numbers', '--format', 'ndjson'])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        /no table or view orders__numbers; there are: .*orders__lines, orders__mine, orders_changes/,
      ) as string,
    })
  })

  it('refuses what is for files, and says what to use', async () => {
    const { run, workspace, address } = await synced()
    const secret = `postgres://x:${address.password()}@127.0.0.1/x`
    const cases: [args: string[], message: RegExp][] = [
      [
        ['snapshot', 'copy.db'],
        new RegExp(`snapshot is for a mirror in a file; .*pg_dump --schema=${address.schema}`),
      ],
      [['snapshot', 'copy.db', '--database', secret], /pg_dump/],
      [['query', 'SELECT 1', '--database', secret], /--database names a file; .*--config/],
      [['status', '--database', secret], /--database names a file; .*--config/],
    ]
    for (const [args, message] of cases) {
      const ended = await run(args)
      expect(ended).toMatchObject({ code: 2, stdout: '' })
      expect(ended.stderr).toMatch(message)
    }
    expect(fs.readdirSync(workspace.folder)).toEqual(['admin-mirror.yaml'])
  })
})

/** A role with no rights yet, and commands that log in with it. */
async function createRole({ rows, address, workspace }: PostgresWorkspace, name: string) {
  const { host, port, database, schema } = address
  const [role, password] = [`${schema}_${name}`, 'long enough for a role']
  const read = await rows()
  await read(`CREATE ROLE ${role} LOGIN PASSWORD '${password}'`)
  onTestFinished(async () => void (await read(`RESET ROLE; DROP OWNED BY ${role}; DROP ROLE ${role}`)))
  const own = createWorkspace({
    baseUrl: 'http://127.0.0.1:1',
    organizations: [ACME],
    collections: { establishments: false },
    database: `postgres://${role}:${variable('DB_PASSWORD')}@${host}:${port}/${database}?schema=${schema}`,
  })
  const run = (...args: string[]) => own.run(args, { env: { DB_PASSWORD: workspace.secret(password) } })
  return { role, read, run }
}

/** The roles of analysts, of all and of one organization, with the rights that the documents propose. */
async function createAnalysts(postgres: PostgresWorkspace) {
  const [all, one] = [await createRole(postgres, 'all'), await createRole(postgres, 'one')]
  const file = path.resolve(import.meta.dirname, '../../../config/MANY-MACHINES.md')
  const [, typed = ''] = /^```postgresql\n(.*?)^```$/ms.exec(fs.readFileSync(file, 'utf8')) ?? []
  const sql = typed
    .replaceAll('acme_analysts', one.role)
    .replaceAll(/\banalysts\b/g, all.role)
    .replaceAll('ROLE mirror', `ROLE ${postgres.address.user}`)
    .replaceAll('admin_mirror', postgres.address.schema)
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, ACME.id)
  for (const statement of sql.split(';').filter((text) => text.trim() !== '')) await all.read(statement)
  return { all, one }
}

describe.skipIf(server.missing !== null)('roles of analysts, by the statements of the documents,', () => {
  it('read all of a mirror, or the rows of one organization, and write nothing', async () => {
    const postgres = await synced()
    const { all, one } = await createAnalysts(postgres)
    const { read } = all
    await read(
      "INSERT INTO orders (_organization_id, _first_seen_at, _changed_at, id) VALUES ('another', now(), now(), 7)",
    )

    await read(`SET ROLE ${all.role}`)
    expect(await read('SELECT count(*)::int AS n FROM sync_status')).toEqual([{ n: 1 }])
    expect(await read('SELECT count(*)::int AS n FROM orders')).toEqual([{ n: 3 }])
    await expect(read('DELETE FROM sync_runs')).rejects.toThrow(/permission denied/)
    await read(`SET ROLE ${one.role}`)
    expect(await read('SELECT count(*)::int AS n FROM orders')).toEqual([{ n: 2 }])
    await expect(read('SELECT 1 FROM orders_raw')).rejects.toThrow(/permission denied/)
    await read('RESET ROLE')
    await read("DELETE FROM orders WHERE _organization_id = 'another'")
    // The owner of the tables sees and writes all.
    expect(await postgres.run(['sync'])).toMatchObject({ code: 0 })
  })

  it('read nothing of tokens, budgets and leases', async () => {
    const postgres = await synced()
    const { all, one } = await createAnalysts(postgres)
    const secret = `
      SELECT format('%I.%I', table_name, column_name) AS name
      FROM information_schema.columns
      WHERE table_schema = $1 AND has_column_privilege($2, format('%I.%I', table_schema, table_name), column_name, 'SELECT')
        AND (table_name IN ('sync_settings', 'sync_gates', 'sync_jobs') OR column_name ~ 'fingerprint|epoch|owner|salt|known')
        AND table_name <> 'sync_rejects'`

    for (const { role } of [all, one])
      expect(await all.read(secret, postgres.address.schema, role)).toEqual([])
    for (const sql of [
      'SELECT * FROM sync_gates',
      'SELECT value FROM sync_settings',
      'SELECT last_fingerprint FROM organizations',
    ])
      expect(await all.run('query', sql)).toMatchObject({
        code: 2,
        stdout: '',
        stderr: expect.stringMatching(/permission denied/) as string,
      })
    for (const args of [
      ['query', 'SELECT name, rows FROM sync_status JOIN organizations AS o ON o.id = organization_id'],
      ['export', 'orders', '--format', 'ndjson'],
      ['export', 'orders__lines', '--format', 'csv'],
      ['export', 'orders_changes', '--format', 'csv'],
    ])
      expect(await all.run(...args)).toMatchObject({ code: 0, stderr: '' })
  })
})

describe.skipIf(server.missing !== null)('a PostgreSQL mirror', () => {
  it('is checked, refreshed and told of', async () => {
    const { run, start } = await synced()

    expect(await run(['check', '--offline'])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/mirror.*holds the mirror/) as string,
    })
    expect(await run(['sync', '--refresh'])).toMatchObject({ code: 0 })
    const daemon = start(['start'])
    await daemon.log(({ event }) => event === 'daemon_started')
    expect(JSON.parse((await run(['status', '--json'])).stdout)).toMatchObject({
      jobs: [{ rows: 2, coverage: 'steady', refreshed_every_ms: null }],
    })
    daemon.killAll('SIGTERM')
    const { code, logs } = await daemon.ended
    expect(code).toBe(0)
    expect(logs.filter(({ event }) => typeof event !== 'string')).toEqual([])
  })
})
