import fs from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { pageOf, serve } from '../../helpers/list-server.ts'
import { ACME, onPostgres, type PostgresWorkspace } from '../../helpers/on-postgres.ts'
import { openDatabase } from '../../helpers/postgres.ts'
import { createWorkspace, variable, type Workspace } from '../../helpers/workspace.ts'

// What commands say of one mirror, in a file and moved to a server.

const server = await openDatabase()

const ITEMS: { id: number; [field: string]: unknown }[] = [
  {
    id: 1,
    total: 1.5,
    big: Number.MAX_SAFE_INTEGER,
    note: 'a, "b"\nc',
    lines: [{ sku: 'a', n: 1 }, { n: 2.5 }],
  },
  { id: 2, total: 2, note: '', paid: true, customer: { name: '田中 Å' } },
  { id: 10, total: -3.25, gone: 1, note: null, paid: false, lines: [], tags: ['x', 1] },
]
/** What can be exported, and tells of the mirror. */
const OF_THE_MIRROR = [
  'organizations',
  'sync_status',
  'sync_runs',
  'sync_walks',
  'sync_columns',
  'sync_rejects',
]

const LATER = ITEMS.map((item) => {
  if (item.id === 2) return { ...item, note: 'é', total: 1e300 }
  return item.id === 10 ? { ...item, gone: undefined, big: 'none' } : item
})

let file: Workspace
let postgres: PostgresWorkspace

beforeAll(async () => {
  if (server.missing !== null) return
  let items = ITEMS
  const { url } = await serve((asked) => pageOf(items, asked))
  const settings = { baseUrl: url, organizations: [ACME], collections: { establishments: false } }
  file = createWorkspace({ ...settings, database: 'mirror.db' })
  expect(await file.run(['sync'])).toMatchObject({ code: 0 })
  items = LATER
  expect(await file.run(['sync'])).toMatchObject({ code: 0 })
  postgres = onPostgres(server, url)
  const { user, host, port, database, schema } = postgres.address
  const to = `postgres://${user}:${variable('DB_PASSWORD')}@${host}:${port}/${database}?schema=${schema}`
  const from = ['--from', file.file('mirror.db')]
  expect(await postgres.run(['move', ...from, '--to', to])).toMatchObject({ code: 0 })
}, 120_000)

/** What is written on both sides. Ages differ. */
async function expectSame(...args: string[]): Promise<string> {
  const written: string[] = []
  for (const run of [file.run, postgres.run]) {
    const { code, stdout, stderr } = await run(args)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    written.push(stdout.replaceAll(/\([^()]* ago\)/g, '(then)'))
  }
  expect(written[1]).toBe(written[0])
  return written[0] ?? ''
}

describe.skipIf(server.missing !== null)('on PostgreSQL as with a file', () => {
  it('describe says the same, of all collections and of each view', async () => {
    expect(await expectSame('describe')).toMatch(/orders: 3 rows\n.*steady/)
    const { collections } = JSON.parse(await expectSame('describe', '--json')) as { collections: object[] }
    expect(collections).toHaveLength(1)
    for (const name of ['orders__lines', 'orders_raw', 'orders_history', 'orders_changes'])
      expect(await expectSame('describe', name, '--json')).toMatch(new RegExp(`"name":"${name}"`))
  })

  it('sync_columns and the notes of status do', async () => {
    const sql = 'SELECT "column", filled, misfits FROM sync_columns ORDER BY "column"'
    const counts = JSON.parse(await expectSame('query', sql, '--format', 'json')) as object[]
    expect(counts).toContainEqual({ column: 'big', filled: 1, misfits: 1 })
    expect(counts).toContainEqual({ column: 'gone', filled: 0, misfits: 0 })
    const notes = await Promise.all(
      [file, postgres].map(async ({ run }) => (await run(['status'])).stdout.match(/^note: .*$/gm)),
    )
    expect(notes[1]).toEqual(notes[0])
    expect(notes[0]).toEqual([
      expect.stringContaining('orders.big: the value of 1 of 3 rows'),
      expect.stringContaining('orders.gone: no row of acme'),
      expect.stringContaining('orders.total: the value of 1 of 3 rows'),
    ])
  })

  const exports = [
    ['orders', '--format', 'csv', '--bom'],
    ['orders', '--format', 'ndjson'],
    ['orders', '--format', 'ndjson', '--envelope', '--org', 'acme'],
    ['orders', '--format', 'ndjson', '--since', '2020-01-01'],
    ['orders', '--format', 'csv', '--since', '2099-01-01'],
    ['orders__lines', '--format', 'csv'],
    ['orders__lines', '--format', 'ndjson', '--since', '2020-01-01'],
    ['orders_raw', '--format', 'csv'],
    ['orders_history', '--format', 'ndjson'],
    ...OF_THE_MIRROR.map((name) => [name, '--format', 'csv']),
  ]
  for (const args of exports)
    it(`export writes the same bytes: ${args.join(' ')}`, async () => {
      expect(await expectSame('export', ...args)).toBeTypeOf('string')
    })

  it('export writes the same Parquet', async () => {
    for (const name of ['orders', 'orders__lines', 'orders_history', ...OF_THE_MIRROR]) {
      const args = ['export', name, '--format', 'parquet', '--output']
      const places = [file.file('one.parquet'), file.file('other.parquet')]
      expect(await file.run([...args, ...places.slice(0, 1)])).toMatchObject({ code: 0 })
      expect(await postgres.run([...args, ...places.slice(1)])).toMatchObject({ code: 0 })
      const [one, other] = places.map((place) => fs.readFileSync(place))
      expect(one?.equals(other ?? Buffer.of())).toBe(true)
    }
  })

  it('export writes the same events, ordered by item and time', async () => {
    const args = ['export', 'orders_changes', '--format', 'ndjson']
    const lines = async (run: Workspace['run']) => (await run(args)).stdout.trim().split('\n')
    const onServer = await lines(postgres.run)
    expect(onServer.toSorted()).toEqual((await lines(file.run)).toSorted())
    expect(onServer.map((line) => (JSON.parse(line) as { change: string }).change)).toEqual([
      'added',
      'added',
      'changed',
      'added',
      'changed',
    ])
  })

  it.each([[], ['--format', 'json'], ['--format', 'ndjson'], ['--format', 'csv']])(
    'query writes the same rows: %j %s',
    async (...format) => {
      const sql = 'SELECT id, total, note, paid FROM orders WHERE id < 10 ORDER BY id'
      expect(await expectSame('query', sql, ...format)).not.toBe('')
    },
  )

  it('query gives the same values to the same parameters', async () => {
    const asked = [
      ['SELECT id, note FROM orders WHERE total >= :least ORDER BY id', 'least=1.5'],
      ['SELECT id FROM orders WHERE note = :note', 'note=é'],
      ['SELECT id FROM orders WHERE id = :id', 'id=10'],
      ['SELECT id FROM orders ORDER BY id LIMIT :count', ':count=2'],
    ]
    for (const [sql = '', param = ''] of asked)
      expect(await expectSame('query', sql, '--param', param, '--format', 'ndjson')).not.toBe('')
  })

  it('the same words refuse a parameter that does not match, and a name that is none', async () => {
    const wrong = [
      ['query', 'SELECT :a'],
      ['query', 'SELECT 1', '--param', 'a=1'],
      ['describe', 'order'],
      ['export', 'sync_tokens', '--format', 'csv'],
      ['export', 'orders', '--format', 'csv', '--org', 'nobody'],
      ['export', 'orders__lines', '--format', 'ndjson', '--envelope'],
    ]
    for (const args of wrong) {
      const one = await file.run(args)
      const other = await postgres.run(args)
      expect(one).toMatchObject({ code: 2, stdout: '' })
      expect(other).toMatchObject({ code: 2, stdout: '', stderr: one.stderr })
    }
  })
})
