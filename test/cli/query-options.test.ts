import fs from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { duckdb } from '../helpers/duckdb.ts'
import { hasTerminal, onTerminal } from '../sandbox-faults/on-terminal.ts'
import { items, pageOf, serve } from './list-server.ts'
import { createWorkspace, organization, type Workspace } from './workspace.ts'

const ENDLESS =
  'SELECT count(*) AS n FROM (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n)'

let workspace: Workspace

beforeAll(async () => {
  const server = await serve((asked) => pageOf(items(2), asked))
  workspace = createWorkspace({ baseUrl: server.url, organizations: [organization('acme', 1)] })
  await workspace.run(['sync'])
})

const query = (sql: string, ...more: string[]) => workspace.run(['query', sql, ...more])

describe.concurrent('query --format', () => {
  it('ndjson writes an object a line, whole numbers exact', async () => {
    const { code, stdout } = await query(
      "SELECT 9223372036854775807 AS big, 'a' || char(10) AS text, NULL AS none, 1e999 AS huge UNION ALL SELECT -9223372036854775808, '', 1.5, -1e999",
      '--format',
      'ndjson',
    )

    expect(code).toBe(0)
    expect(stdout.split('\n')).toEqual([
      '{"big":9223372036854775807,"text":"a\\n","none":null,"huge":1e999}',
      '{"big":-9223372036854775808,"text":"","none":1.5,"huge":-1e999}',
      '',
    ])
  })

  it('csv tells NULL from an empty text', async () => {
    const { stdout } = await query("SELECT NULL AS a, '' AS b, 'c' AS c", '--format', 'csv')

    expect(stdout).toBe('a,b,c\n,"",c\n')
  })
})

describe.concurrent('query --format json and ndjson', () => {
  it.each(['json', 'ndjson'])('%s warns of the numbers that most readers of JSON round', async (format) => {
    const sql =
      'SELECT id, 9007199254740993 AS a, 9007199254740991 AS safe, -9007199254740993 AS b FROM orders'
    const { stderr } = await query(sql, '--format', format)
    const toFile = await query(sql, '--format', format, '--output', `long.${format}`)

    expect(stderr).toMatch(/^warning: the columns a, b had whole numbers beyond 2\^53; .*\n$/)
    expect(toFile.stderr).toBe(stderr)
    expect((await query('SELECT id, 9007199254740992 AS kept FROM orders', '--format', format)).stderr).toBe(
      '',
    )
  })
})

describe.concurrent('query --format parquet', () => {
  const sql = `
    SELECT
      id, _changed_at, max(_changed_at) AS latest, count(*) AS n, avg(id) AS mean, 9007199254740993 AS exact,
      iif(id = 1, 1, 2.5) AS mixed, iif(id = 1, 'a', 2) AS text, NULL AS none, x'00ff' AS bytes, '2026-01-02' AS day
    FROM orders GROUP BY id ORDER BY id`

  it('is read by DuckDB with the types of the columns, or of the values that a query works out', async () => {
    await query(sql, '--format', 'parquet', '--output', 'result.parquet')

    const types = await duckdb(
      workspace.file,
      "SELECT column_name, column_type FROM (DESCRIBE FROM 'result.parquet')",
    )
    expect(Object.fromEntries(types)).toEqual({
      id: 'BIGINT',
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
    expect(
      await duckdb(
        workspace.file,
        `SELECT id, mean, exact, mixed, text, none, bytes FROM 'result.parquet' ORDER BY id`,
      ),
    ).toEqual([
      [1n, 1, 9007199254740993n, 1, 'a', null, 'AP8='],
      [2n, 2, 9007199254740993n, 2.5, '2', null, 'AP8='],
    ])
  })

  it('goes to standard output, and holds the columns of a result without rows', async () => {
    const through = ['sh', '-c', '"$@" > none.parquet', 'sh']
    const none = ['query', 'SELECT id, _changed_at FROM orders WHERE id < 0', '--format', 'parquet']
    expect(await workspace.run(none, { through })).toMatchObject({ code: 0, stderr: '' })

    const types = await duckdb(workspace.file, "SELECT column_type FROM (DESCRIBE FROM 'none.parquet')")
    expect(types).toEqual([['BIGINT'], ['TIMESTAMP WITH TIME ZONE']])
  })

  it.each([
    ['2.5', 'INTEGER', 'i'],
    ['1', 'TEXT', 'nullif(i, i)'],
  ])(
    'refuses a later value (%s) that is no %s as those before, and leaves the file as it was',
    async (late, kind, early) => {
      fs.writeFileSync(workspace.file('before.parquet'), 'yesterday')
      const mixed = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20001) SELECT iif(i = 20001, ${late}, ${early}) AS v FROM n`
      const { code, stderr } = await query(mixed, '--format', 'parquet', '--output', 'before.parquet')

      expect(code).toBe(2)
      expect(stderr).toMatch(new RegExp(`column v: a value is no ${kind}, .*take csv`))
      expect(fs.readFileSync(workspace.file('before.parquet'), 'utf8')).toBe('yesterday')
    },
  )

  it.skipIf(!hasTerminal)('is not for a terminal', async () => {
    await expect(onTerminal(['query', 'SELECT 1', '--format', 'parquet'], workspace)).rejects.toThrow(
      /not for a terminal; .*--output result\.parquet/,
    )
  })
})

describe.concurrent('query --param', () => {
  it.each([
    ['12', '12', 'integer'],
    ['-9223372036854775808', '-9223372036854775808', 'integer'],
    ['9223372036854775808', '9223372036854775808', 'text'],
    ['007', '007', 'text'],
    ['1.5', '1.5', 'real'],
    ['1.10', '1.10', 'text'],
    ["x' OR 1=1 --", "x' OR 1=1 --", 'text'],
    ['', '""', 'text'],
  ])('takes (%s) as what SQLite would write so', async (value, shown, type) => {
    const { stdout } = await query(
      'SELECT :v AS v, typeof(:v) AS t',
      '--param',
      `v=${value}`,
      '--format',
      'csv',
    )

    expect(stdout).toBe(`v,t\n${shown},${type}\n`)
  })

  it('takes several, by any of the three signs', async () => {
    const params = ['--param', 'a=1', '--param', ':b=2', '--param', 'c=3']

    expect((await query('SELECT :a + @b + $c AS sum', ...params, '--format', 'csv')).stdout).toBe('sum\n6\n')
  })

  it.each([
    ['that the SQL lacks', 'SELECT 1', ['--param', 'id=1'], /--param id: the SQL has no such parameter/],
    ['without a value', 'SELECT :id', [], /--param id=VALUE/],
    ['without a name', 'SELECT ?', [], /write :NAME/],
    ['that is no pair', 'SELECT 1', ['--param', 'id'], /NAME=VALUE/],
  ])('refuses a parameter %s with 2', async (_, sql, params, why) => {
    const { code, stdout, stderr } = await query(sql, ...params)

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(why)
  })
})

/** A shell that feeds the command. */
const piped = (feed: string) => ({ through: ['sh', '-c', `${feed} | exec "$@"`, 'sh'] })

describe.concurrent('query -', () => {
  const args = ['query', '-', '--format', 'csv']

  it('reads the SQL from standard input', async () => {
    expect(await workspace.run(args, piped("printf 'SELECT 1 AS one;\\n'"))).toMatchObject({
      code: 0,
      stdout: 'one\n1\n',
    })
  })

  it('refuses what is longer than SQLite takes, and what is no text', async () => {
    const endless = await workspace.run(args, piped('yes'))
    const bytes = await workspace.run(args, piped("printf 'SELECT \\377'"))

    expect([endless.code, bytes.code]).toEqual([2, 2])
    expect(endless.stderr).toMatch(/longer than 1,000,000 bytes/)
    expect(bytes.stderr).toMatch(/no UTF-8/)
  })

  it('is refused with a NUL character, since SQLite would leave out what follows it', async () => {
    const { code, stdout, stderr } = await workspace.run(
      args,
      piped("printf 'SELECT 1 AS one \\000 WHERE 0'"),
    )

    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(/NUL character/)
  })
})

describe.concurrent('query --output', () => {
  it('writes a file, and nothing to standard output', async () => {
    const { code, stdout } = await query('SELECT 1 AS one', '--format', 'json', '--output', 'one.json')

    expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
    expect(JSON.parse(fs.readFileSync(workspace.file('one.json'), 'utf8'))).toEqual([{ one: 1 }])
  })

  it('leaves the file as it was if an error comes after the first rows', async () => {
    fs.writeFileSync(workspace.file('kept.csv'), 'yesterday')
    const sql = `
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
      SELECT i, iif(i = 50000, json('{'), '') AS text FROM n
    `

    const { code } = await query(sql, '--format', 'csv', '--output', 'kept.csv')

    expect(code).toBe(2)
    expect(fs.readFileSync(workspace.file('kept.csv'), 'utf8')).toBe('yesterday')
  })

  it.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ] as const)('leaves the file as it was after %s while SQLite computes', async (signal, code) => {
    const name = `${signal}.csv`
    fs.writeFileSync(workspace.file(name), 'yesterday')
    const running = workspace.start(['query', ENDLESS, '--output', name])
    const child = await readingChild(running.pid)

    running.kill(signal)

    expect(await running.ended).toMatchObject({ code, signal: null })
    expect(fs.readFileSync(workspace.file(name), 'utf8')).toBe('yesterday')
    expect(isAlive(child)).toBe(false)
  })
})

describe.concurrent('a query that would take too long', () => {
  it('is stopped by --timeout with 1', async () => {
    const { code, stdout, stderr } = await query(ENDLESS, '--timeout', '300ms')

    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/^TIMEOUT: .*300ms/)
  })

  it.each(['0s', 'soon', '-1s'])('needs a duration: %s', async (typed) => {
    expect((await query('SELECT 1', `--timeout=${typed}`)).code).toBe(2)
  })

  it.each(['SIGTERM', 'SIGKILL'] as const)('does not outlive its command after %s', async (signal) => {
    const running = workspace.start(['query', ENDLESS, '--timeout', '10m'])
    const child = await readingChild(running.pid)

    running.kill(signal)

    expect(await running.ended).toMatchObject({ code: null, signal })
    while (isAlive(child)) await sleep(20)
  })
})

describe.skipIf(!hasTerminal)('query on a terminal', () => {
  const wide =
    "SELECT 'first' AS a, printf('%.70c', 'x') AS b, 'a' || char(27) || 'b' AS c UNION ALL SELECT 'second', NULL, ''"

  it('shows a table that is too wide as a list of fields', async () => {
    const shown = await onTerminal(['query', wide.replace('.70c', '.200c')], workspace)

    expect(shown.replaceAll('\r', '').split('\n')).toEqual([
      expect.stringMatching(/^-- row 1 -+$/),
      'a  first',
      `b  ${'x'.repeat(200)}`,
      'c  a\\u{1b}b',
      expect.stringMatching(/^-- row 2 -+$/),
      'a  second',
      'b',
      'c',
      '',
    ])
  })

  it('loses nothing of a long value where no terminal is', async () => {
    const { stdout } = await workspace.run(['query', wide.replace('.70c', '.5000c')])

    expect(stdout).toContain(`first   ${'x'.repeat(5000)}  a\\u{1b}b\n`)
    expect(stdout.split('\n')[0]?.length).toBeLessThan(200)
  })

  it('shows a table that fits as a table', async () => {
    expect(await onTerminal(['query', 'SELECT 1 AS one'], workspace)).toBe('one\r\n---\r\n  1\r\n')
  })
})

/** The process that works for the command. */
async function readingChild(parent: number): Promise<number> {
  for (;;) {
    const [child] = listChildren(parent)
    if (child !== undefined) return child
    await sleep(20)
  }
}

function listChildren(parent: number): number[] {
  const children = fs.readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8')
  return children
    .split(' ')
    .filter((pid) => pid !== '')
    .map(Number)
}

/** A process that has ended, and that nobody asked for yet, still has its number. */
function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/.test(fs.readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}
