import fs from 'node:fs'
import { beforeAll, describe, expect } from 'vitest'
import { parquet as parquetPieces } from '../../../src/cli/output/parquet.ts'
import { duckdb } from '../../helpers/duckdb.ts'
import { ACME, createScene, GLOBEX, sceneTests } from '../../helpers/scene.ts'
import type { Workspace } from '../../helpers/workspace.ts'

const it = sceneTests()

// What query and export print, take and refuse, and from which files. What reads, and what does not: test/store/sqlite/read.test.ts; how else a file may
// be none of ours: open.test.ts beside it; signals and pipes: test/stories/signals.test.ts.

const ITEMS = [
  '{"id":9223372036854775807,"note":"","price":1.10,"huge":12345678901234567890,"ratio":0.1,"paid":true,"items":[{"sku":"a","n":9007199254740993},{"sku":"","n":null}]}',
  '{"id": -1,\n"note":"Zo\\u00eb, \\"q\\"\\n\\u001b[31mred \\u202e","price":2,"huge":1e400,"ratio":null,"paid":false,"items":[]}',
]
const ON_LINES = ITEMS.map((item) =>
  item.replace(': -1,\n', ':-1,').replace('1.10', '1.1').replace('\\u00eb', 'ë').replace('\\u202e', '\u202e'),
)
const COUNTING = 'WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n'

let workspace: Workspace

beforeAll(async () => {
  const settings = { organizations: [ACME, GLOBEX], collections: { establishments: false, invoices: {} } }
  const body = `{"data":[${ITEMS.join(',')}],"links":{"next":null},"meta":{"current_page":1,"last_page":1,"total":2}}`
  ;({ workspace } = await createScene({ settings, instead: () => ({ body }) }))
  await workspace.run(['sync', '--collection', 'orders'])
  await workspace.run(['snapshot', 'copy.db'])
})

const query = (sql: string, ...more: string[]) => workspace.run(['query', sql, ...more])
const csv = async (sql: string, ...more: string[]) => (await query(sql, ...more, '--format', 'csv')).stdout
const exported = (...args: string[]) => workspace.run(['export', ...args])
const linesOf = (text: string) => text.split('\n').slice(0, -1)

const ofAcme = async (name: string) =>
  linesOf((await exported(name, '--format', 'ndjson', '--org', 'acme')).stdout)

/** Writes standard output to a file: Parquet is no text. */
const parquet = ({ run, file }: Workspace, name: string, ...args: string[]) =>
  run([...args, '--format', 'parquet'], { through: ['sh', '-c', `exec "$@" > ${file(name)}`, 'sh'] })
const typesOf = async ({ file: place }: Workspace, file: string) =>
  String(await duckdb(place, `SELECT column_name, column_type FROM (DESCRIBE FROM '${file}')`))

/** Without a configuration anywhere. */
const bare = (args: readonly string[]) =>
  workspace.run(args, { env: { ADMIN_MIRROR_CONFIG: workspace.file('there-is-none.yaml') } })

describe('query', () => {
  it('prints a table, numbers to the right, a row a line, and no control character as it is', async () => {
    const sql = "SELECT DISTINCT note, price, x'00ff' AS bytes, id FROM orders ORDER BY id"
    const { code, stdout, stderr } = await query(sql)

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout.split('\n')).toEqual([
      'note                                 price  bytes                     id',
      '-----------------------------------  -----  -------  -------------------',
      `Zoë, "q"\\u{a}\\u{1b}[31mred \\u{202e}      2  x'00ff'                   -1`,
      "                                       1.1  x'00ff'  9223372036854775807",
      '',
    ])
  })

  it('heads a long table once, loses nothing of a long value, and cuts it on a terminal', async () => {
    const long = await query(`${COUNTING} WHERE i < 2500) SELECT i, printf('%.5000c', 'x') AS x FROM n`)
    const sql = "SELECT printf('%.5000c', 'x') AS x, zeroblob(40) AS bytes"
    const shown = await workspace.run(['query', sql], { columns: 80 })

    const lines = linesOf(long.stdout)
    expect(lines).toHaveLength(2502)
    expect(lines.filter((line) => /^ *[i-]/.test(line))).toHaveLength(2)
    expect(lines.at(-1)).toBe(`2500  ${'x'.repeat(5000)}`)
    expect(shown.stdout.split('\n')[2]).toMatch(/^x{40,60}\.\.\. +x'(00){30}'$/)
  })

  it('prints a REAL from 2^53 on as SQLite does, so that it looks inexact', async () => {
    const reals = '9007199254740993.0 -1e16 1e17 69093252554500000197.0 -1.5e300 1e999'.split(' ')
    const sql = `SELECT column1 AS v, CAST(column1 AS TEXT) AS text FROM (VALUES ${reals.map((real) => `(${real})`).join()})`
    const rows = linesOf(await csv(sql)).slice(1)
    const table = linesOf((await query(sql)).stdout).slice(2)

    expect(rows).toHaveLength(reals.length)
    for (const [at, row] of rows.entries()) {
      const [v, text] = row.split(',')
      expect([v, table[at]?.trim().split(/ +/)]).toEqual([text, [text, text]])
    }
    expect(rows).toContain('6.90932525545e+19,6.90932525545e+19')
    expect(await csv('SELECT 9007199254740991.0 AS v')).toBe('v\n9007199254740991\n')
  })

  it('prints JSON with whole numbers exact', async () => {
    const sql =
      'SELECT DISTINCT id, price, huge, paid, 1e17 AS big, -1e999 AS far, NULL AS none FROM orders WHERE paid'
    const object =
      '{"id":9223372036854775807,"price":1.1,"huge":"12345678901234567890","paid":1,"big":1.0e+17,"far":-1e999,"none":null}'

    expect((await query(sql, '--format', 'json')).stdout).toBe(`[\n${object}\n]\n`)
    expect((await query(sql, '--format', 'ndjson')).stdout).toBe(`${object}\n`)
  })

  it('prints a result without rows in each format', async () => {
    const printed = []
    for (const format of ['table', 'json', 'ndjson', 'csv'])
      printed.push((await query('SELECT id, note FROM orders WHERE 0', '--format', format)).stdout)

    expect(printed).toEqual(['id  note\n--  ----\n', '[]\n', '', 'id,note\n'])
  })

  it.for<[string, string[], RegExp]>([
    ['SELECT totl FROM orders', [], /no such column: totl; the tables sync_columns .* list the names/],
    ["SELECT json_extract('{', '$') FROM orders", [], /malformed JSON/],
    ['SELECT 1', ['--param', 'id=1'], /--param id: the SQL has no such parameter/],
    ['SELECT :id', [], /--param id=VALUE/],
    ['SELECT ?', [], /write :NAME/],
  ])('refuses (%s) %j with 2, says why, and changes nothing', async ([sql, more, why]) => {
    const stderr = expect.stringMatching(why)
    expect(await query(sql, ...more)).toMatchObject({ code: 2, stdout: '', stderr })
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(4)
  })

  it('takes each --param as what SQLite would write so', async () => {
    const typed = {
      a: ['12', 'integer'],
      b: ['-9223372036854775808', 'integer'],
      c: ['9223372036854775808', 'text'],
      d: ['007', 'text'],
      e: ['1.5', 'real'],
      f: ['1.10', 'text'],
      g: ["x' OR 1=1 --", 'text'],
    }
    const columns = Object.keys(typed).map((name) => `:${name}, typeof(@${name})`)
    const params = Object.entries(typed).flatMap(([name, [value]]) => ['--param', `${name}=${value}`])

    const [, row] = linesOf(await csv(`SELECT ${columns.join()}`, ...params))

    expect(row).toBe(Object.values(typed).join())
  })

  it('reads SQL from standard input, and refuses one with a NUL, since SQLite would leave out what follows it', async () => {
    const read = await workspace.run(['query', '-', '--format', 'csv'], { stdin: 'SELECT 1 AS one;\n' })
    const refused = await workspace.run(['query', '-'], { stdin: 'SELECT 1 \0 WHERE 0' })

    expect(read.stdout).toBe('one\n1\n')
    expect(refused).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(/NUL character/) })
  })
})

describe('export', () => {
  it('writes the live rows of all organizations, or of those that are named, as CSV that tells NULL from an empty text', async () => {
    const { code, stdout, stderr } = await exported('orders', '--format', 'csv')
    const one = await exported('orders', '--format', 'csv', '--org', GLOBEX.id.toUpperCase())
    const empty = await exported('invoices', '--format', 'csv')

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout.split('\n')[0]).toBe(
      '_organization_id,id,_first_seen_at,_changed_at,note,price,huge,ratio,paid,items',
    )
    expect(stdout.match(/^[0-9a-f-]{36},/gm)).toHaveLength(4)
    expect(stdout).toMatch(/,9223372036854775807,[^,]+,[^,]+,"",1\.1,12345678901234567890,0\.1,1,/)
    expect(stdout).toMatch(/,-1,[^,]+,[^,]+,"Zoë, ""q""\n.*",2,1e400,,0,\[\]\n/)
    expect(one.stdout.match(/^[0-9a-f-]{36}/gm)).toEqual([GLOBEX.id, GLOBEX.id])
    expect(empty.stdout).toBe('_organization_id,id,_first_seen_at,_changed_at\n')
  })

  it('writes items as NDJSON as in _json, every value exact; elements of arrays and other tables as they stand', async () => {
    for (const name of ['orders', 'ORDERS'])
      expect((await ofAcme(name)).toSorted()).toEqual([...ON_LINES].toSorted())
    expect(await ofAcme('orders__items')).toEqual([
      `{"_organization_id":"${ACME.id}","_parent_id":9223372036854775807,"_index":0,"sku":"a","n":9007199254740993}`,
      `{"_organization_id":"${ACME.id}","_parent_id":9223372036854775807,"_index":1,"sku":"","n":null}`,
    ])
    expect(await ofAcme('organizations')).toEqual([
      `{"id":"${ACME.id}","name":"acme","configured":1,"held_since":null,"held_reason":null}`,
    ])
    expect(await ofAcme('sync_runs')).toEqual([expect.stringContaining(`"organization_id":"${ACME.id}"`)])
    for (const name of ['orders_raw', 'orders_changes', 'sync_walks', 'sync_columns', 'sync_rejects'])
      expect(await exported(name, '--format', 'csv')).toMatchObject({ code: 0, stderr: '' })
  })

  it.for<[string, RegExp]>([
    ['order --format csv', /no such table: order; the tables sync_columns .* list the names/],
    ['orders --format csv --org nobody', /--org nobody: .*acme, globex/],
  ])('exits with 2, and says why: %s', async ([line, why]) => {
    const stderr = expect.stringMatching(why)
    expect(await exported(...line.split(' '))).toMatchObject({ code: 2, stdout: '', stderr })
  })
})

describe('--format parquet', () => {
  it('is read by DuckDB with the types of the columns, every number exact, also where there are no rows', async () => {
    for (const name of ['orders', 'orders_history'])
      await parquet(workspace, `${name}.parquet`, 'export', name)

    const types = 'note,VARCHAR,price,DOUBLE,huge,VARCHAR'
    expect(await typesOf(workspace, 'orders.parquet')).toContain(`_changed_at,VARCHAR,${types}`)
    const rows = `SELECT id, price, huge, ratio FROM 'orders.parquet' WHERE _organization_id = '${ACME.id}' ORDER BY id DESC`
    expect(await duckdb(workspace.file, rows)).toEqual([
      [9223372036854775807n, 1.1, '12345678901234567890', 0.1],
      [-1n, 2, '1e400', null],
    ])
    expect(await duckdb(workspace.file, "SELECT count(*) FROM 'orders_history.parquet'")).toEqual([[0n]])
  })

  describe('of an array', () => {
    it.override({ options: { list: [{ id: 1, items: [{ n: 1, price: 0.5 }] }] } })

    it('has the types of its columns, also where no element has a value any more', async ({ synced }) => {
      synced.api.list = [{ id: 1, items: [{ n: null }] }]
      await synced.workspace.run(['sync'])
      await parquet(synced.workspace, 'items.parquet', 'export', 'orders__items')

      const types = '_index,BIGINT,n,BIGINT,price,DOUBLE'
      expect(await typesOf(synced.workspace, 'items.parquet')).toContain(types)
    })
  })

  it('has the types of the values where a query works them out', async () => {
    await parquet(
      workspace,
      'result.parquet',
      'query',
      `SELECT count(*) AS n, avg(price) AS mean, 9007199254740993 AS exact, iif(price = 2, 1, 2.5) AS mixed,
         iif(price = 2, 'a', 2) AS text, NULL AS none, x'00ff' AS bytes
       FROM orders GROUP BY price ORDER BY price DESC`,
    )

    expect(await typesOf(workspace, 'result.parquet')).toBe(
      'n,BIGINT,mean,DOUBLE,exact,BIGINT,mixed,DOUBLE,text,VARCHAR,none,VARCHAR,bytes,VARCHAR',
    )
    expect(await duckdb(workspace.file, "SELECT * FROM 'result.parquet'")).toEqual([
      [2n, 2, 9007199254740993n, 1, 'a', null, 'AP8='],
      [2n, 1.1, 9007199254740993n, 2.5, '2', null, 'AP8='],
    ])
  })

  it('ends a row group at 16 MiB of text, and writes it then', async () => {
    const rows = Array.from({ length: 5 }, () => ['x'.repeat(8 * 1024 * 1024)])
    const pieces = await Array.fromAsync(parquetPieces({ columns: ['v'], types: ['TEXT'], batches: [rows] }))
    fs.writeFileSync(workspace.file('groups.parquet'), Buffer.concat(pieces as Uint8Array[]))

    const counts = "SELECT row_group_num_rows FROM parquet_metadata('groups.parquet') ORDER BY row_group_id"
    expect(await duckdb(workspace.file, counts)).toEqual([[2n], [2n], [1n]])
    expect(pieces).toHaveLength(3)
  })

  it('refuses a later value that is no number as those before, and a terminal', async () => {
    const mixed = `${COUNTING} WHERE i < 20001) SELECT iif(i = 20001, 2.5, i) AS v FROM n`
    const later = await parquet(workspace, 'mixed.parquet', 'query', mixed)
    const terminal = await workspace.run(['query', 'SELECT 1', '--format', 'parquet'], { columns: 80 })

    expect([later.code, terminal.code]).toEqual([2, 2])
    expect(later.stderr).toMatch(/column v: a value is no INTEGER, .*take csv/)
    expect(terminal.stderr).toMatch(/not for a terminal; .*> result\.parquet/)
  })
})

describe('--database', () => {
  const COUNT = ['query', 'SELECT count(*) AS n FROM orders', '--format', 'csv']
  const READING = [COUNT, ['export', 'orders', '--format', 'csv'], ['status']]
  const NOT_OURS: [file: string, code: number, why: RegExp][] = [
    ['text', 4, /no SQLite database/],
    ['absent.db', 4, /there is no mirror at/],
    ['', 2, /--database: name a file/],
  ]

  it.for(READING)('is all that a command needs which reads: %j', async (args) => {
    for (const file of ['mirror.db', 'copy.db']) {
      const stdout = expect.stringMatching(/./)
      expect(await bare([...args, '--database', file])).toMatchObject({ code: 0, stderr: '', stdout })
    }
    expect((await bare(args)).code).toBe(2)
  })

  it('is looked at after the SQL, whatever it is', async () => {
    expect(await bare(['query', 'selec 1', '--database', 'text'])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/syntax error/),
    })
  })

  it.for([...READING, ['snapshot', 'made.db']])(
    'exits with 4 for a file that is none of ours: %j',
    async (args) => {
      fs.writeFileSync(workspace.file('text'), 'x'.repeat(200))
      for (const [file, code, why] of NOT_OURS) {
        const stderr = expect.stringMatching(why)
        expect(await bare([...args, '--database', file])).toMatchObject({ code, stdout: '', stderr })
      }
      for (const file of ['absent.db', 'made.db']) expect(fs.existsSync(workspace.file(file))).toBe(false)
    },
  )

  it('goes before a configuration, which is not read then, and knows the organizations by name and id', async () => {
    fs.writeFileSync(workspace.file('wrong.yaml'), 'nonsense: [')
    const args = [...COUNT, '--config', 'wrong.yaml', '--database', 'copy.db']
    const items = ['export', 'orders', '--format', 'ndjson', '--database', 'copy.db', '--org']

    expect(await workspace.run(args)).toMatchObject({ code: 0, stdout: 'n\n4\n' })
    for (const name of ['acme', GLOBEX.id])
      expect(linesOf((await bare([...items, name])).stdout)).toHaveLength(2)
  })
})
