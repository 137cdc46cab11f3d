import fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { duckdb } from '../../helpers/duckdb.ts'
import { onPostgres, syncedOnPostgres } from '../../helpers/on-postgres.ts'
import { openDatabase } from '../../helpers/postgres.ts'
import { stop } from '../../helpers/processes.ts'

// What commands do and print with a mirror on a server, where that is code of its own.

const server = await openDatabase()

const ITEMS = [
  { id: 1, total: 1.5, lines: [{ sku: 'a' }, { sku: 'b' }] },
  { id: 2, total: 2, note: 'b, "c"' },
]

const synced = () => syncedOnPostgres(server, ITEMS)

describe.skipIf(server.missing !== null)('commands on a PostgreSQL mirror', () => {
  it('sync, refresh, compare, tell, and forget', async () => {
    const { run, read, start } = await synced()
    const daemon = start(['start'])
    await daemon.log(({ event }) => event === 'daemon_started')
    for (const line of ['sync --refresh --wait', 'verify --wait', 'resume'])
      expect(await run(line.split(' ')), line).toMatchObject({ code: 0 })
    expect(JSON.parse((await run(['status', '--json'])).stdout)).toMatchObject({
      jobs: [{ rows: 2, coverage: 'steady', problem: null }],
      daemon: { running: true },
    })
    expect((await stop(daemon)).code).toBe(0)

    await read('UPDATE sync_jobs SET fresh_as_of = now()')
    expect(await run(['forget', '--org', 'acme', '--yes'])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/forgot acme orders: 2 rows/) as string,
    })
    expect(await read('SELECT fresh_as_of, newest, refresh, failing_since FROM sync_jobs')).toEqual([
      { fresh_as_of: null, newest: null, refresh: null, failing_since: null },
    ])
  })

  it('write CSV, items and views of users; sums and means as numbers, and times and numbers that JSON lacks as text', async () => {
    const { run, read } = await synced()
    await read('CREATE MATERIALIZED VIEW orders__mine AS SELECT _organization_id, id FROM orders')
    const printed = async (...args: string[]) => (await run(args)).stdout
    const values = `
      SELECT sum(id) AS sum, avg(id) AS mean, 1e20::numeric AS large, 20.0 AS whole, 'NaN'::float8 AS nan,
        'infinity'::timestamptz AS never, '0044-03-15 12:00+00 BC'::timestamptz AS ides, '2026-01-02'::timestamptz AS day
      FROM orders`

    expect(await printed('query', 'SELECT id, total FROM orders ORDER BY id', '--format', 'csv')).toBe(
      'id,total\n1,1.5\n2,2\n',
    )
    expect(await printed('export', 'orders', '--format', 'ndjson')).toContain(
      '{"id":2,"total":2,"note":"b, \\"c\\""}\n',
    )
    expect(await printed('export', 'orders__mine', '--format', 'ndjson')).toContain('"id":2}\n')
    expect(await printed('query', values, '--format', 'ndjson')).toBe(
      '{"sum":3,"mean":1.5,"large":"100000000000000000000","whole":20,"nan":"NaN",' +
        '"never":"infinity","ides":"0044-03-15 12:00:00+00 BC","day":"2026-01-02T00:00:00.000Z"}\n',
    )
  })

  it('write Parquet with the types of the values that a query works out', async () => {
    const { workspace, address } = await synced()
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

  it('make no mirror where they need one, and check SQL and names first', async () => {
    const { run, rows, address } = onPostgres(server, 'http://127.0.0.1:9')
    const none = /no mirror at .* yet/
    const cases: [args: string[], code: number, message: RegExp][] = [
      ...['SELEC 1', 'SELECT id FROM', 'DELETE FROM orders', 'SELECT 1; SELECT 2', 'SELECT :id'].map(
        (sql): [string[], number, RegExp] => [['query', sql], 2, /SQL|query only reads/],
      ),
      ...[
        'SELECT 1',
        '/* a plan */ EXPLAIN SELECT 1',
        'SELECT id, missing FROM orders',
        'SELECT unknown(1)',
      ].map((sql): [string[], number, RegExp] => [['query', sql], 4, none]),
      [['export', 'nope', '--format', 'csv'], 2, /no table or view nope/],
      [['export', 'orders', '--format', 'csv', '--org', 'nobody'], 2, /--org nobody/],
      [['verify'], 4, none],
      [['resume'], 4, none],
      [['forget', '--org', 'acme', '--yes'], 4, none],
    ]
    for (const [args, code, message] of cases) {
      const stderr = expect.stringMatching(message) as string
      expect([args, await run(args)]).toMatchObject([args, { code, stdout: '', stderr }])
    }
    const read = await rows()
    expect(await read('SELECT 1 FROM pg_namespace WHERE nspname = $1', address.schema)).toEqual([])
  })

  it('refuse what is for files, and say what to use', async () => {
    const { run, workspace, address } = onPostgres(server, 'http://127.0.0.1:9')
    const secret = `postgres://x:${address.password()}@127.0.0.1/x`
    const dump = new RegExp(`snapshot is for a mirror in a file; .*pg_dump --schema=${address.schema}`)
    const cases: [args: string[], message: RegExp][] = [
      [['snapshot', 'copy.db'], dump],
      [['snapshot', 'copy.db', '--database', secret], /--database names a file/],
      [['query', 'SELECT 1', '--database', secret], /--database names a file; .*--config/],
      [['status', '--database', secret], /--database names a file; .*--config/],
    ]
    for (const [args, message] of cases)
      expect(await run(args)).toMatchObject({
        code: 2,
        stdout: '',
        stderr: expect.stringMatching(message) as string,
      })
    expect(fs.readdirSync(workspace.folder)).toEqual(['admin-mirror.yaml'])
  })
})
