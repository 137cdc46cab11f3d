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

  it.for([
    [80, ['one  two', '---  --------', '  1  a\\u{1b}b', '']],
    [12, [expect.stringMatching(/^-- row 1 -+$/), 'one  1', 'two  a\\u{1b}b', '']],
  ] as const)(
    'shows a terminal of %i columns a table that fits, or a list of fields',
    async ([columns, lines]) => {
      const { stdout } = await workspace.run(['query', "SELECT 1 AS one, 'a' || char(27) || 'b' AS two"], {
        columns,
      })

      expect(stdout.split('\n')).toEqual(lines)
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

  it.for(['json', 'ndjson'])('as %s warns of the numbers that most readers of JSON round', async (format) => {
    const sql = 'SELECT 9007199254740993 AS a, 9007199254740991 AS safe, -9007199254740993 AS b'
    const { stderr } = await query(sql, '--format', format)
    const toFile = await query(sql, '--format', format, '--output', `long.${format}`)

    expect(stderr).toMatch(/^warning: there are whole numbers beyond 2\^53; .*\n$/)
    expect(toFile.stderr).toBe(stderr)
    expect((await query('SELECT 9007199254740992 AS kept', '--format', format)).stderr).toBe('')
  })

  // What reads, and what does not: test/store/sqlite/read/reader.test.ts.
  it.for<[string, string[], RegExp]>([
    ['DELETE FROM orders', [], /\S/],
    ['SELECT 1; DELETE FROM orders', [], /\S/],
    ['SELEC 1', [], /\S/],
    ['', [], /\S/],
    ['SELECT totl FROM orders', [], /no such column: totl; "admin-mirror describe" lists the names/],
    ['SELECT * FROM ordrs', [], /no such table: ordrs; "admin-mirror describe" lists the names/],
    ['SELECT 1', ['--param', 'id=1'], /--param id: the SQL has no such parameter/],
    ['SELECT :id', [], /--param id=VALUE/],
    ['SELECT ?', [], /write :NAME/],
    ['SELECT 1', ['--param', 'id'], /NAME=VALUE/],
    ['SELECT 1', ['--timeout=0s'], /--timeout/],
    ['SELECT 1', ['--timeout=soon'], /--timeout/],
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

describe('query --format parquet', () => {
  const sql = `
    SELECT
      price AS id, _changed_at, max(_changed_at) AS latest, count(*) AS n, avg(price) AS mean, 9007199254740993 AS exact,
      iif(price = 2, 1, 2.5) AS mixed, iif(price = 2, 'a', 2) AS text, NULL AS none, x'00ff' AS bytes, '2026-01-02' AS day
    FROM orders GROUP BY price ORDER BY price DESC`

  it('is read by DuckDB with the types of the columns, or of the values that a query works out', async () => {
    await query(sql, '--format', 'parquet', '--output', 'result.parquet')

    const describing = "SELECT column_name, column_type FROM (DESCRIBE FROM 'result.parquet')"
    expect(Object.fromEntries(await duckdb(workspace.file, describing))).toEqual({
      id: 'DOUBLE',
      _changed_at: 'TIMESTAMP WITH TIME ZONE',
      latest: 'TIMESTAMP WITH TIME ZONE',
      n: 'BIGINT',
      mean: 'DOUBLE',
      exact: 'BIGINT',
      mixed: 'DOUBLE',
      text: 'VARCHAR',
      none: 'VARCHAR',
      bytes: 'VARCHAR',
      day: 'VARCHAR',
    })
    const values = `SELECT n, mean, exact, mixed, text, none, bytes FROM 'result.parquet'`
    expect(await duckdb(workspace.file, values)).toEqual([
      [1n, 2, 9007199254740993n, 1, 'a', null, 'AP8='],
      [1n, 1.1, 9007199254740993n, 2.5, '2', null, 'AP8='],
    ])
  })

  it.for([
    ['2.5', 'INTEGER', 'i'],
    ['1', 'TEXT', 'nullif(i, i)'],
  ] as const)(
    'refuses a later value (%s) that is no %s as those before, and leaves the file as it was',
    async ([late, kind, early]) => {
      fs.writeFileSync(workspace.file(`${kind}.parquet`), 'yesterday')
      const mixed = `${COUNTING} WHERE i < 20001) SELECT iif(i = 20001, ${late}, ${early}) AS v FROM n`
      const { code, stderr } = await query(mixed, '--format', 'parquet', '--output', `${kind}.parquet`)

      expect([code, stderr]).toEqual([
        2,
        expect.stringMatching(new RegExp(`column v: a value is no ${kind}, .*take csv`)),
      ])
      expect(fs.readFileSync(workspace.file(`${kind}.parquet`), 'utf8')).toBe('yesterday')
    },
  )

  it('is for no terminal', async () => {
    const { code, stderr } = await workspace.run(['query', 'SELECT 1', '--format', 'parquet'], {
      columns: 80,
    })

    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/not for a terminal; .*--output result\.parquet/),
    ])
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

describe('query --output', () => {
  it('writes a file, and nothing to standard output', async () => {
    const { code, stdout } = await query('SELECT 1 AS one', '--format', 'json', '--output', 'one.json')

    expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
    expect(JSON.parse(fs.readFileSync(workspace.file('one.json'), 'utf8'))).toEqual([{ one: 1 }])
  })

  it('leaves the file as it was if an error comes after the first rows', async () => {
    fs.writeFileSync(workspace.file('kept.csv'), 'yesterday')
    const sql = `${COUNTING} WHERE i < 50000) SELECT i, iif(i = 50000, json('{'), '') AS text FROM n`

    expect((await query(sql, '--format', 'csv', '--output', 'kept.csv')).code).toBe(2)
    expect(fs.readFileSync(workspace.file('kept.csv'), 'utf8')).toBe('yesterday')
  })
})

it('query --timeout stops one that takes too long with 1', async () => {
  const { code, stdout, stderr } = await query(`${COUNTING}) SELECT count(*) FROM n`, '--timeout', '300ms')

  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toMatch(/^TIMEOUT: .*300ms/)
})
