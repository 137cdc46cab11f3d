import fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { duckdb } from '../../helpers/duckdb.ts'
import { pageOf, serve } from '../../helpers/list-server.ts'
import { ACME, onPostgres, type PostgresWorkspace } from '../../helpers/on-postgres.ts'
import { openDatabase } from '../../helpers/postgres.ts'
import { createWorkspace } from '../../helpers/workspace.ts'

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
      // Beside a file nobody knows before there is a mirror what a statement that writes would do.
      const onFile = /delete|drop/i.test(sql) ? 4 : code
      expect([sql, await file.run(['query', sql])]).toMatchObject([sql, { code: onFile, stdout: '' }])
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

  it('exports a materialized view of the user', async () => {
    const { run, rows } = await synced()
    const read = await rows()
    await read('CREATE MATERIALIZED VIEW orders__mine AS SELECT _organization_id, id FROM orders')

    expect(await run(['export', 'orders__mine', '--format', 'ndjson'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('"id":2}\n') as string,
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
      [['snapshot', 'copy.db', '--database', secret], /--database names a file/],
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

describe.skipIf(server.missing !== null)('a PostgreSQL mirror', () => {
  it('is refreshed and told of', async () => {
    const { run, start } = await synced()

    expect(await run(['sync', '--refresh'])).toMatchObject({ code: 0 })
    const daemon = start(['start'])
    await daemon.log(({ event }) => event === 'daemon_started')
    expect(JSON.parse((await run(['status', '--json'])).stdout)).toMatchObject({
      jobs: [{ rows: 2, coverage: 'steady', state: 'read' }],
    })
    daemon.killAll('SIGTERM')
    const { code, logs } = await daemon.ended
    expect(code).toBe(0)
    expect(logs.filter(({ event }) => typeof event !== 'string')).toEqual([])
  })
})
