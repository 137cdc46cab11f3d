import { beforeAll, describe, expect } from 'vitest'
import { duckdb } from '../../helpers/duckdb.ts'
import { ACME, createScene, GLOBEX, sceneTests } from '../../helpers/scene.ts'
import type { Workspace } from '../../helpers/workspace.ts'

const it = sceneTests()

// What export writes. Formats: query.test.ts.

const ITEMS = [
  '{"id":9223372036854775807,"note":"","price":1.10,"huge":12345678901234567890,"ratio":0.1,"at":"2026-01-02T03:04:05+02:00","items":[{"sku":"a","n":9007199254740993},{"sku":"","n":null}]}',
  '{"id": -1,\n"note":"Zo\\u00eb, \\"q\\"\\n","price":2,"huge":1e400,"ratio":null,"at":null,"items":[]}',
]
const ON_LINES = ITEMS.map((item) =>
  item.replace(': -1,\n', ':-1,').replace('1.10', '1.1').replace('\\u00eb', 'ë'),
)

let workspace: Workspace

beforeAll(async () => {
  const settings = {
    organizations: [ACME, GLOBEX],
    collections: { establishments: false, invoices: {} },
  }
  const meta = { current_page: 1, last_page: 1, total: 2 }
  const body = `{"data":[${ITEMS.join(',')}],"links":{"next":null},"meta":${JSON.stringify(meta)}}`
  ;({ workspace } = await createScene({ settings, instead: () => ({ body }) }))
  await workspace.run(['sync', '--collection', 'orders'])
})

const exported = (...args: string[]) => workspace.run(['export', ...args])
const linesOf = (text: string) => text.split('\n').slice(0, -1)

describe('export', () => {
  it('writes the live rows of all organizations, or of those that are named, as CSV that tells NULL from an empty text', async () => {
    const { code, stdout, stderr } = await exported('orders', '--format', 'csv')

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout.split('\n')[0]).toBe(
      '_organization_id,_first_seen_at,_changed_at,id,note,price,huge,ratio,at,items',
    )
    expect(stdout.match(/^[0-9a-f-]{36},/gm)).toHaveLength(4)
    expect(stdout).toMatch(/,9223372036854775807,"",1\.1,12345678901234567890,0\.1,/)
    expect(stdout).toMatch(/,-1,"Zoë, ""q""\n",2,1e400,,,\[\]\n/)
    const one = await exported('orders', '--format', 'csv', '--org', GLOBEX.id)
    expect(one.stdout.match(/^[0-9a-f-]{36}/gm)).toEqual([GLOBEX.id, GLOBEX.id])
    expect((await exported('invoices', '--format', 'csv')).stdout).toBe(
      '_organization_id,_first_seen_at,_changed_at,id\n',
    )
  })

  it('writes the items of a collection as NDJSON, every value exact, each on its line', async () => {
    const { stdout } = await exported('orders', '--format', 'ndjson', '--org', 'acme')

    expect(linesOf(stdout).toSorted()).toEqual([...ON_LINES].toSorted())
  })

  it('writes elements as they stand', async () => {
    const { stdout } = await exported('orders__items', '--format', 'ndjson', '--org', 'acme')

    expect(linesOf(stdout)).toEqual([
      `{"_organization_id":"${ACME.id}","_parent_id":9223372036854775807,"_index":0,"sku":"a","n":9007199254740993}`,
      `{"_organization_id":"${ACME.id}","_parent_id":9223372036854775807,"_index":1,"sku":"","n":null}`,
    ])
  })

  it('writes Parquet that DuckDB reads with types, every number exact, of tables and of views', async () => {
    for (const name of ['orders', 'orders__items', 'orders_history', 'sync_status'])
      await workspace.run(['export', name, '--format', 'parquet'], {
        through: ['sh', '-c', `exec "$@" > ${workspace.file(name)}.parquet`, 'sh'],
      })

    const typesOf = async (name: string) =>
      Object.fromEntries(
        await duckdb(
          workspace.file,
          `SELECT column_name, column_type FROM (DESCRIBE FROM '${name}.parquet')`,
        ),
      )
    expect(await typesOf('orders')).toMatchObject({
      _changed_at: 'VARCHAR',
      id: 'BIGINT',
      price: 'DOUBLE',
      huge: 'VARCHAR',
      ratio: 'DOUBLE',
    })
    expect(await typesOf('orders__items')).toMatchObject({ _index: 'BIGINT', sku: 'VARCHAR', n: 'BIGINT' })
    expect(await typesOf('sync_status')).toMatchObject({ rows: 'BIGINT', coverage: 'VARCHAR' })
    const rows = `SELECT id, note, price, huge, ratio FROM 'orders.parquet' WHERE _organization_id = '${ACME.id}' ORDER BY id DESC`
    expect(await duckdb(workspace.file, rows)).toEqual([
      [9223372036854775807n, '', 1.1, '12345678901234567890', 0.1],
      [-1n, 'Zoë, "q"\n', 2, '1e400', null],
    ])
    expect(await duckdb(workspace.file, "SELECT count(*) FROM 'orders_history.parquet'")).toEqual([[0n]])
    const compressed = "SELECT DISTINCT compression FROM parquet_metadata('orders.parquet')"
    expect(await duckdb(workspace.file, compressed)).toEqual([['ZSTD']])
  })

  it('writes what every mirror has, of one organization too', async () => {
    for (const name of [
      'orders_raw',
      'orders_changes',
      'sync_runs',
      'sync_walks',
      'sync_columns',
      'sync_rejects',
    ])
      expect(await exported(name, '--format', 'csv')).toMatchObject({ code: 0, stderr: '' })
    const { stdout } = await exported('organizations', '--format', 'ndjson', '--org', 'acme')
    const runs = await exported('sync_runs', '--format', 'ndjson', '--org', 'globex')

    expect(JSON.parse(stdout)).toMatchObject({ id: ACME.id, name: 'acme', configured: 1, held_since: null })
    expect(JSON.parse(runs.stdout)).toMatchObject({ organization_id: GLOBEX.id, status: 'succeeded' })
  })

  it.for<[string, string, RegExp]>([
    [
      'of a collection that nobody knows',
      'order --format csv',
      /no table or view order; there are: .*orders_raw/,
    ],
    ['of what is no table of the mirror', 'sqlite_schema --format csv', /no table or view/],
    ['of an organization that nobody knows', 'orders --format csv --org nobody', /--org nobody/],
    [
      'of the columns of an organization',
      'sync_columns --format csv --org acme',
      /belong to no organization/,
    ],
    ...['--since=2026-01-01', '--since-seq=5', '--envelope', '--bom', '--output=x'].map(
      (option): [string, string, RegExp] => [
        `with ${option}`,
        `orders --format csv ${option}`,
        /unknown option/,
      ],
    ),
  ])('exits with 2, and says why, %s', async ([, line, reason]) => {
    const { code, stdout, stderr } = await exported(...line.split(' '))

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(reason)
  })
})

describe('export of an organization that left the configuration', () => {
  it.override({ options: { list: [{ id: 7 }], settings: { organizations: [ACME, GLOBEX] } } })

  it('writes its rows, which stay in the mirror', async ({ synced }) => {
    const { run } = synced.workspace
    synced.configure({ organizations: [ACME] })
    const args = ['export', 'orders', '--format', 'ndjson', '--org']

    expect(await run([...args, 'globex'])).toMatchObject({ code: 0, stdout: '{"id":7}\n' })
    expect(await run([...args, GLOBEX.id, '--org', 'acme'])).toMatchObject({
      code: 0,
      stdout: '{"id":7}\n{"id":7}\n',
    })
    expect(await run([...args, 'nobody'])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/--org nobody/),
    })
  })
})
