import fs from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { duckdb as inDuckdb } from '../helpers/duckdb.ts'
import { hasTerminal, onTerminal } from '../sandbox-faults/on-terminal.ts'
import { runInProcess } from './in-process.ts'
import { pageOf, serve } from './list-server.ts'
import { createWorkspace, organization, type Workspace } from './workspace.ts'

const ACME = organization('acme', 1)
const GLOBEX = organization('globex', 2)
const ITEMS = [
  '{"id":9223372036854775807,"note":"","price":1.10,"huge":12345678901234567890,"total":"19.90","ratio":0.1,"at":"2026-01-02T03:04:05+02:00","items":[{"sku":"a","n":9007199254740993},{"sku":"","n":null}]}',
  '{"id":-1,"note":"Zo\\u00eb, \\"q\\"\\n","price":2,"huge":1e400,"total":"0.00","ratio":null,"at":null,"items":[]}',
]
const CHANGED = '2026-11-20T08:30:00.000Z'

let workspace: Workspace

beforeAll(async () => {
  const server = await serve((asked) => {
    const { body } = pageOf([], asked, { total: 2 })
    return { body: JSON.stringify(body).replace('"data":[]', `"data":[${ITEMS.join(',')}]`) }
  })
  workspace = createWorkspace({
    baseUrl: server.url,
    organizations: [ACME, GLOBEX],
    collections: { establishments: false, lines: { key: ['id', 'total'] } },
  })
  await workspace.run(['sync', '--collection', 'orders'])
  await workspace.run(['sync', '--collection', 'lines', '--org', 'acme'])
  workspace.change(`
    UPDATE orders SET _changed_at = '2026-11-19T00:00:00.000Z';
    UPDATE orders SET _changed_at = '${CHANGED}' WHERE id > 0 AND _organization_id = '${ACME.id}';
    UPDATE orders_raw SET _changed_at = (SELECT _changed_at FROM orders AS o WHERE o._organization_id = orders_raw._organization_id AND o.id = orders_raw.id);
    INSERT INTO orders_history (_organization_id, id, _json, _valid_from, _valid_to, _reason) SELECT _organization_id, id, _json, '2026-11-01T00:00:00.000Z', '${CHANGED}', 'changed' FROM orders_raw WHERE id > 0;
  `)
})

const exported = (...args: string[]) => workspace.run(['export', ...args])
const duckdb = (sql: string, timeZone?: string) => inDuckdb(workspace.file, sql, timeZone)
const warned = async (...args: string[]) => (await exported(...args, '--format', 'ndjson')).stderr
const linesOf = (text: string) => text.split('\n').slice(0, -1)

describe.concurrent('export of views', () => {
  it('writes the elements of an array with the name of the organization', async () => {
    const { stdout } = await exported('orders__items', '--format', 'csv', '--org', 'acme')

    expect(linesOf(stdout)).toEqual([
      '_organization_id,_organization,_parent_id,_index,sku,n',
      `${ACME.id},acme,9223372036854775807,0,a,9007199254740993`,
      `${ACME.id},acme,9223372036854775807,1,"",`,
    ])
  })

  it('writes them as NDJSON as they stand', async () => {
    const { stdout } = await exported('orders__items', '--format', 'ndjson', '--org', 'globex')

    expect(linesOf(stdout)[0]).toBe(
      `{"_organization_id":"${GLOBEX.id}","_parent_id":9223372036854775807,"_index":0,"sku":"a","n":9007199254740993}`,
    )
  })

  it.each(['orders_raw', 'orders_history', 'orders_changes'])('writes %s', async (name) => {
    for (const format of ['csv', 'ndjson', 'parquet']) {
      const { code, stderr } = await exported(name, '--format', format)
      expect(code).toBe(0)
      expect(stderr).toMatch(format === 'ndjson' ? /^warning: the column id had whole numbers .*\n$/ : /^$/)
    }
  })

  it.each(['sync_tokens', 'orders_', 'orders__nothing', 'sqlite_schema'])(
    'refuses %s with 2, and names what there is',
    async (name) => {
      const { code, stderr } = await exported(name, '--format', 'csv')

      expect(code).toBe(2)
      expect(stderr).toMatch(/there are: lines, .*orders, orders__items, orders_changes, orders_history/)
    },
  )
})

describe.concurrent('export as NDJSON', () => {
  it('warns once of the numbers that most readers of JSON round, and of no others', async () => {
    for (const more of [[], ['--envelope']])
      expect(await warned('orders', ...more)).toMatch(
        /^warning: the fields huge, id, n had whole numbers beyond 2\^53; .*, or --format csv\n$/,
      )
    expect(await warned('orders__items')).toMatch(/^warning: the columns _parent_id, n had .*\n$/)
    expect(await warned('--quiet', 'orders')).toBe('')
    expect(await warned('sync_runs')).toBe('')
  })
})

describe.concurrent('export --since', () => {
  it.each([
    ['orders', 1],
    ['orders_raw', 1],
    ['orders__items', 2],
    ['orders_history', 2],
  ])('writes what has changed since: %s', async (name, rows) => {
    const since = async (time: string) => {
      const { stdout } = await exported(name, '--format', 'ndjson', '--since', time)
      return linesOf(stdout).length
    }

    expect(await since(CHANGED)).toBe(rows)
    expect(await since('2026-11-20T09:30:00+01:00')).toBe(rows)
    expect(await since('2026-11-20T08:30:00.001Z')).toBe(0)
  })

  it('compares the times of events', async () => {
    const args = ['orders_changes', '--format', 'ndjson', '--since']

    expect(linesOf((await exported(...args, '2026-11-01')).stdout).length).toBeGreaterThan(2)
    expect((await exported(...args, '2099-01-01')).stdout).toBe('')
  })

  it('takes a day as its beginning, in UTC', async () => {
    expect(linesOf((await exported('orders', '--format', 'ndjson', '--since', '2026-11-20')).stdout)).toEqual(
      [ITEMS[0]],
    )
  })

  it.each(['yesterday', '2026-02-30', '2026-13-01', '1732000000', ''])(
    'refuses (%s) with 2',
    async (time) => {
      const { code, stderr } = await exported('orders', '--format', 'csv', `--since=${time}`)

      expect(code).toBe(2)
      expect(stderr).toMatch(/--since .*2026-11-20/)
    },
  )
})

describe.concurrent('export as NDJSON with --envelope', () => {
  it('says whose an item is, and leaves the item as it was sent', async () => {
    const { stdout } = await exported('orders', '--format', 'ndjson', '--envelope', '--org', 'acme')

    const [first = ''] = linesOf(stdout)
    expect(first.endsWith(`,"item":${ITEMS[0]}}`)).toBe(true)
    expect(first).toMatch(
      `{"organization_id":"${ACME.id}","organization":"acme","key":9223372036854775807,"first_seen_at":"`,
    )
    expect(JSON.parse(first)).toMatchObject({ changed_at: CHANGED })
  })

  it('has a list for a key of several fields', async () => {
    const { stdout } = await exported('lines', '--format', 'ndjson', '--envelope')

    expect(stdout).toContain('"key":[9223372036854775807,"19.90"],')
  })

  it.each([
    ['for csv', ['orders', '--format', 'csv', '--envelope']],
    ['for a view', ['orders__items', '--format', 'ndjson', '--envelope']],
    ['--bom for ndjson', ['orders', '--format', 'ndjson', '--bom']],
  ])('is refused with 2 where it has no meaning: %s', async (_, args) => {
    expect(await exported(...args)).toMatchObject({ code: 2, stdout: '' })
  })
})

describe.concurrent('export as CSV', () => {
  it('tells NULL from an empty text', async () => {
    const { stdout } = await exported('orders', '--format', 'csv', '--org', 'acme')

    expect(stdout).toMatch(/,9223372036854775807,"",1\.1,12345678901234567890,19\.90,0\.1,/)
    expect(stdout).toMatch(/,-1,"Zoë, ""q""\n",2,1e400,0\.00,,,\[\]\n/)
  })

  it('begins with the mark of UTF-8 for spreadsheets', async () => {
    const [plain, marked] = await Promise.all([
      exported('orders', '--format', 'csv'),
      exported('orders', '--format', 'csv', '--bom'),
    ])

    expect(marked.stdout).toBe(`\ufeff${plain.stdout}`)
  })
})

describe.concurrent('export as Parquet', () => {
  it('is read by DuckDB with types, every number exact', async () => {
    await exported('orders', '--format', 'parquet', '--output', 'orders.parquet')

    const types = await duckdb("SELECT column_name, column_type FROM (DESCRIBE FROM 'orders.parquet')")
    expect(Object.fromEntries(types)).toEqual({
      _organization_id: 'VARCHAR',
      _organization: 'VARCHAR',
      _first_seen_at: 'TIMESTAMP WITH TIME ZONE',
      _changed_at: 'TIMESTAMP WITH TIME ZONE',
      id: 'BIGINT',
      note: 'VARCHAR',
      price: 'DOUBLE',
      huge: 'VARCHAR',
      total: 'VARCHAR',
      ratio: 'DOUBLE',
      at: 'VARCHAR',
      items: 'VARCHAR',
    })
    const rows = await duckdb(
      `SELECT _organization, id, note, price, huge, total, ratio, "at", items, _changed_at FROM 'orders.parquet' ORDER BY _organization, id DESC`,
    )
    // An instant, whatever the time zone of the one who asks.
    const berlin = "WHERE _changed_at = '2026-11-20 09:30:00+01'::TIMESTAMPTZ"
    expect(await duckdb(`SELECT count(*) > 0 FROM 'orders.parquet' ${berlin}`, 'Europe/Berlin')).toEqual([
      [true],
    ])
    expect(rows).toHaveLength(4)
    expect(rows[0]).toEqual([
      'acme',
      9223372036854775807n,
      '',
      1.1,
      '12345678901234567890',
      '19.90',
      0.1,
      '2026-01-02T03:04:05+02:00',
      '[{"sku":"a","n":9007199254740993},{"sku":"","n":null}]',
      '2026-11-20 08:30:00+00',
    ])
    expect(rows[1]).toEqual([
      'acme',
      -1n,
      'Zoë, "q"\n',
      2,
      '1e400',
      '0.00',
      null,
      null,
      '[]',
      '2026-11-19 00:00:00+00',
    ])
    expect(await duckdb("SELECT DISTINCT compression FROM parquet_metadata('orders.parquet')")).toEqual([
      ['ZSTD'],
    ])
  })

  it('is whole although its reader has ended before anything of it is written', async () => {
    const place = { cwd: workspace.folder, env: { ADMIN_MIRROR_CONFIG: workspace.file('admin-mirror.yaml') } }
    const args = ['export', 'orders', '--format', 'csv', '--output', 'late.csv']
    const { code } = await runInProcess(args, { ...place, newToken: still })

    expect(code).toBe(0)
    expect(fs.readFileSync(workspace.file('late.csv'), 'utf8').trimEnd().split('\n').length).toBeGreaterThan(
      4,
    )
  })

  it('holds views, and tables without rows', async () => {
    await exported('orders__items', '--format', 'parquet', '--output', 'items.parquet')
    await exported('lines_history', '--format', 'parquet', '--output', 'empty.parquet')

    expect(
      await duckdb("SELECT sku, n FROM 'items.parquet' WHERE _organization = 'acme' ORDER BY _index"),
    ).toEqual([
      ['a', 9007199254740993n],
      ['', null],
    ])
    expect(await duckdb("SELECT count(*) FROM 'empty.parquet'")).toEqual([[0n]])
  })

  it('has groups of rows, and all rows of them', async () => {
    const large = createWorkspace()
    fs.copyFileSync(workspace.mirror, large.mirror)
    large.change(`
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 45000)
      INSERT INTO orders_history (_organization_id, id, _json, _valid_from, _valid_to, _reason)
      SELECT '${ACME.id}', i, '{}', '${CHANGED}', '${CHANGED}', 'changed' FROM n
    `)
    const file = workspace.file('history.parquet')
    const args = ['export', 'orders_history', '--format', 'parquet', '--database', 'mirror.db']
    await large.run([...args, '--output', file])

    expect(
      await duckdb("SELECT count(*), count(DISTINCT id), sum(id) FROM 'history.parquet' WHERE id <= 45000"),
    ).toEqual([[45_000n, 45_000n, 1_012_522_500n]])
    const [[groups]] = (await duckdb(
      "SELECT num_row_groups FROM parquet_file_metadata('history.parquet')",
    )) as [[bigint]]
    expect(groups).toBeGreaterThan(1n)
  })

  it('goes to standard output', async () => {
    const through = ['sh', '-c', '"$@" > piped.parquet', 'sh']

    const { code } = await workspace.run(['export', 'orders', '--format', 'parquet'], { through })

    expect(code).toBe(0)
    expect(await duckdb("SELECT count(*) FROM 'piped.parquet'")).toEqual([[4n]])
  })

  it.skipIf(!hasTerminal)('but not to a terminal', async () => {
    await expect(onTerminal(['export', 'orders', '--format', 'parquet'], workspace)).rejects.toThrow(
      /not for a terminal; .*--output orders\.parquet/,
    )
  })
})

function still(): string {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2000)
  return '0123456789abcdef'
}
