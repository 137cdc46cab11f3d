import fs from 'node:fs'
import { beforeAll, describe, expect } from 'vitest'
import { duckdb } from '../../helpers/duckdb.ts'
import { ACME, createScene, sceneTests } from '../../helpers/scene.ts'
import { variable, type Workspace } from '../../helpers/workspace.ts'

const it = sceneTests()

// What query prints, takes and refuses. Signals and pipes: test/stories/stopped-reading.test.ts.

const ITEMS = [
  '{"id":9007199254740993,"name":"Zo\\u00eb \\u001b[31mred\\r\\nnext \\u202e","price":1.10,"huge":12345678901234567890,"paid":true}',
  '{"id":9223372036854775807,"name":"plain, \\"quoted\\"","price":2,"huge":1e400,"paid":false}',
]
const COUNTING = 'WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n'

let workspace: Workspace

beforeAll(async () => {
  const body = `{"data":[${ITEMS.join(',')}],"links":{"next":null},"meta":{"current_page":1,"last_page":1,"total":2}}`
  ;({ workspace } = await createScene({ instead: () => ({ body }) }))
  await workspace.run(['sync'])
})

const query = (sql: string, ...more: string[]) => workspace.run(['query', sql, ...more])
/** As CSV. */
const csv = async (sql: string, ...more: string[]) => (await query(sql, ...more, '--format', 'csv')).stdout

describe('query', () => {
  it('prints a table, numbers to the right, a row a line, and no control character as it is', async () => {
    const { code, stdout, stderr } = await query('SELECT name, price, id FROM orders ORDER BY id')

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout.split('\n')).toEqual([
      'name                                      price                   id',
      '----------------------------------------  -----  -------------------',
      'Zoë \\u{1b}[31mred\\u{d}\\u{a}next \\u{202e}    1.1     9007199254740993',
      'plain, "quoted"                               2  9223372036854775807',
      '',
    ])
  })

  it('heads a long table once, and loses nothing of a long value', async () => {
    const { stdout } = await query(`${COUNTING} WHERE i < 2500) SELECT i FROM n`)

    const lines = stdout.trimEnd().split('\n')
    expect(lines).toHaveLength(2502)
    expect(lines.filter((line) => /^[i-]/.test(line.trim()))).toHaveLength(2)
    expect(lines.at(-1)).toBe('2500')
    expect((await query("SELECT printf('%.5000c', 'x') AS a")).stdout).toContain('x'.repeat(5000))
  })

  it('cuts long values on a terminal', async () => {
    const sql = "SELECT 1 AS one, 'a' || char(27) || printf('%.5000c', 'x') AS two"
    const { stdout } = await workspace.run(['query', sql], { columns: 80 })

    expect(stdout.split('\n')[2]).toMatch(/^ {2}1 {2}a\\u\{1b\}x{40,60}\.\.\.$/)
  })

  it.for([
    ['9007199254740992', '9007199254740992'],
    ['9007199254740993.0', '9007199254740992.0'],
    ['9007199254740991.0', '9007199254740991'],
    ['-1e16', '-10000000000000000.0'],
    ['1e17', '1.0e+17'],
    ['69093252554500000197.0', '6.90932525545e+19'],
    ['-1.5e300', '-1.5e+300'],
  ] as const)(
    'prints a REAL from 2^53 on as SQLite does, so that it looks inexact: %s',
    async ([sql, text]) => {
      for (const [format, wrote] of [
        ['csv', `v\n${text}\n`],
        ['json', `[\n{"v":${text}}\n]\n`],
        ['table', expect.stringContaining(`\n${text}\n`)],
      ] as const)
        expect((await query(`SELECT ${sql} AS v`, '--format', format)).stdout).toEqual(wrote)
      if (/[.e]/.test(text)) expect(workspace.value(`SELECT CAST(${sql} AS TEXT)`)).toBe(text)
    },
  )

  it.for([
    [
      'json',
      '[{"id":9007199254740993,"price":1.1,"huge":"12345678901234567890","paid":1,"none":null,"far":1e999}]\n',
    ],
    [
      'ndjson',
      '{"id":9007199254740993,"price":1.1,"huge":"12345678901234567890","paid":1,"none":null,"far":1e999}\n',
    ],
  ] as const)('prints %s with whole numbers exact', async ([format, text]) => {
    const sql = 'SELECT id, price, huge, paid, NULL AS none, 1e999 AS far FROM orders WHERE paid'
    const { code, stdout } = await query(sql, '--format', format)

    expect({ code, stdout: stdout.replaceAll(/\n(?=[{\]])/g, '') }).toEqual({ code: 0, stdout: text })
  })

  it('prints CSV that other programs read, and tells NULL from an empty text', async () => {
    expect(await csv('SELECT id, name FROM orders WHERE paid = 0')).toBe(
      'id,name\n9223372036854775807,"plain, ""quoted"""\n',
    )
    expect(await csv("SELECT NULL AS a, '' AS b, 'c' AS c")).toBe('a,b,c\n,"",c\n')
  })

  it.for([
    ['table', 'id  name\n--  ----\n'],
    ['json', '[]\n'],
    ['csv', 'id,name\n'],
  ] as const)('prints a result without rows as %s', async ([format, text]) => {
    const { code, stdout } = await query('SELECT id, name FROM orders WHERE 0', '--format', format)

    expect({ code, stdout }).toEqual({ code: 0, stdout: text })
  })

  // What reads, and what does not: test/store/sqlite/read/reader.test.ts.
  it.for<[string, string[], RegExp]>([
    ['DELETE FROM orders', [], /\S/],
    ['SELECT 1; DELETE FROM orders', [], /\S/],
    ['SELEC 1', [], /\S/],
    ['', [], /\S/],
    [
      'SELECT totl FROM orders',
      [],
      /no such column: totl; the tables sync_columns and sqlite_schema list the names/,
    ],
    [
      'SELECT * FROM ordrs',
      [],
      /no such table: ordrs; the tables sync_columns and sqlite_schema list the names/,
    ],
    ['SELECT 1', ['--param', 'id=1'], /--param id: the SQL has no such parameter/],
    ['SELECT :id', [], /--param id=VALUE/],
    ['SELECT ?', [], /write :NAME/],
    ['SELECT 1', ['--param', 'id'], /NAME=VALUE/],
    ['SELECT 1', ['--timeout=10s'], /--timeout/],
    ['SELECT 1', ['--output=one.csv'], /--output/],
  ])('refuses (%s) %j with 2, says why, and changes nothing', async ([sql, more, why]) => {
    const { code, stdout, stderr } = await query(sql, ...more)

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(why)
    expect(stderr).not.toMatch(/ at .*:\d+:\d+/)
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(2)
    expect(fs.readdirSync(workspace.folder).filter((name) => /^(other|copy)/.test(name))).toEqual([])
  })

  it('needs no token', async ({ synced }) => {
    synced.configure({ organizations: [{ ...ACME, token: variable('NOT_SET') }] })

    expect((await synced.workspace.run(['query', 'SELECT 1'])).code).toBe(0)
  })
})

/** Writes standard output to a file: it is no text. */
const queryTo = (file: string, sql: string) =>
  workspace.run(['query', sql, '--format', 'parquet'], {
    through: ['sh', '-c', `exec "$@" > ${workspace.file(file)}`, 'sh'],
  })

describe('query --format parquet', () => {
  const sql = `
    SELECT
      price AS id, _changed_at, count(*) AS n, avg(price) AS mean, 9007199254740993 AS exact,
      iif(price = 2, 1, 2.5) AS mixed, iif(price = 2, 'a', 2) AS text, NULL AS none, x'00ff' AS bytes
    FROM orders GROUP BY price ORDER BY price DESC`

  it('is read by DuckDB with the types of the columns, or of the values that a query works out', async () => {
    await queryTo('result.parquet', sql)

    const describing = "SELECT column_name, column_type FROM (DESCRIBE FROM 'result.parquet')"
    expect(Object.fromEntries(await duckdb(workspace.file, describing))).toEqual({
      id: 'DOUBLE',
      _changed_at: 'VARCHAR',
      n: 'BIGINT',
      mean: 'DOUBLE',
      exact: 'BIGINT',
      mixed: 'DOUBLE',
      text: 'VARCHAR',
      none: 'VARCHAR',
      bytes: 'VARCHAR',
    })
    const values = `SELECT n, mean, exact, mixed, text, none, bytes FROM 'result.parquet'`
    expect(await duckdb(workspace.file, values)).toEqual([
      [1n, 2, 9007199254740993n, 1, 'a', null, 'AP8='],
      [1n, 1.1, 9007199254740993n, 2.5, '2', null, 'AP8='],
    ])
  })

  it('refuses a later value that is no number as those before', async () => {
    const mixed = `${COUNTING} WHERE i < 20001) SELECT iif(i = 20001, 2.5, i) AS v FROM n`
    const { code, stderr } = await queryTo('mixed.parquet', mixed)

    expect([code, stderr]).toEqual([2, expect.stringMatching(/column v: a value is no INTEGER, .*take csv/)])
  })

  it('is for no terminal', async () => {
    const { code, stderr } = await workspace.run(['query', 'SELECT 1', '--format', 'parquet'], {
      columns: 80,
    })

    expect([code, stderr]).toEqual([2, expect.stringMatching(/not for a terminal; .*> result\.parquet/)])
  })
})

describe('query --param', () => {
  it.for([
    ['12', '12', 'integer'],
    ['-9223372036854775808', '-9223372036854775808', 'integer'],
    ['9223372036854775808', '9223372036854775808', 'text'],
    ['007', '007', 'text'],
    ['1.5', '1.5', 'real'],
    ['1.10', '1.10', 'text'],
    ["x' OR 1=1 --", "x' OR 1=1 --", 'text'],
    ['', '""', 'text'],
  ] as const)('takes (%s) as what SQLite would write so', async ([value, shown, type]) => {
    expect(await csv('SELECT :v AS v, typeof(:v) AS t', '--param', `v=${value}`)).toBe(
      `v,t\n${shown},${type}\n`,
    )
  })

  it('takes several, by any of the three signs', async () => {
    const params = ['--param', 'a=1', '--param', ':b=2', '--param', 'c=3']

    expect(await csv('SELECT :a + @b + $c AS sum', ...params)).toBe('sum\n6\n')
  })
})

describe('query -', () => {
  it('reads the SQL from standard input', async () => {
    const { code, stdout } = await workspace.run(['query', '-', '--format', 'csv'], {
      stdin: 'SELECT 1 AS one;\n',
    })

    expect({ code, stdout }).toEqual({ code: 0, stdout: 'one\n1\n' })
  })

  it.for<[string, string | Uint8Array, RegExp]>([
    ['is longer than is read', 'y'.repeat(1_000_001), /longer than 1,000,000 bytes/],
    ['is no text', Buffer.from('SELECT \xff', 'latin1'), /no UTF-8/],
    ['has a NUL, since SQLite would leave out what follows it', 'SELECT 1 \0 WHERE 0', /NUL character/],
  ])('refuses with 2 what %s', async ([, stdin, why]) => {
    const { code, stdout, stderr } = await workspace.run(['query', '-'], { stdin })

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(why)
  })
})
