import fs from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { pageOf, serve } from './list-server.ts'
import { createWorkspace, organization, variable, type Workspace } from './workspace.ts'

let workspace: Workspace

beforeAll(async () => {
  const items = [
    '{"id":9007199254740993,"name":"Zo\\u00eb \\u001b[31mred\\r\\nnext \\u202e","price":1.10,"huge":12345678901234567890,"paid":true}',
    '{"id":9223372036854775807,"name":"plain, \\"quoted\\"","price":2,"huge":1e400,"paid":false}',
  ]
  const server = await serve((asked) => {
    const { body } = pageOf([], asked, { total: 2 })
    // Written as text, so that no number is rounded on its way.
    return { body: JSON.stringify(body).replace('"data":[]', `"data":[${items.join(',')}]`) }
  })
  workspace = createWorkspace({ baseUrl: server.url, organizations: [organization('acme', 1)] })
  await workspace.run(['sync'])
})

const query = (sql: string, ...more: string[]) => workspace.run(['query', sql, ...more])

describe.concurrent('query', () => {
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

  it('prints JSON with whole numbers exact', async () => {
    const { code, stdout } = await query(
      'SELECT id, price, huge, paid, NULL AS none FROM orders',
      '--format',
      'json',
    )

    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toHaveLength(2)
    expect(stdout).toContain(
      '{"id":9007199254740993,"price":1.1,"huge":"12345678901234567890","paid":1,"none":null}',
    )
    expect(stdout).toContain('{"id":9223372036854775807,"price":2,"huge":"1e400","paid":0,"none":null}')
  })

  it('prints CSV that other programs read', async () => {
    const { code, stdout } = await query('SELECT id, name FROM orders WHERE paid = 0', '--format', 'csv')

    expect(code).toBe(0)
    expect(stdout).toBe('id,name\n9223372036854775807,"plain, ""quoted"""\n')
  })

  it.each([
    ['table', 'id  name\n--  ----\n'],
    ['json', '[]\n'],
    ['csv', 'id,name\n'],
  ])('prints a result without rows as %s', async (format, text) => {
    const { code, stdout } = await query('SELECT id, name FROM orders WHERE 0', '--format', format)

    expect({ code, stdout }).toEqual({ code: 0, stdout: text })
  })

  it('heads a long table once', async () => {
    const sql =
      'WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500) SELECT i FROM n'

    const { stdout } = await query(sql)

    const lines = stdout.trimEnd().split('\n')
    expect(lines).toHaveLength(2502)
    expect(lines.filter((line) => /^[i-]/.test(line.trim()))).toHaveLength(2)
    expect(lines.at(-1)).toBe('2500')
  })

  it.each([
    'DELETE FROM orders',
    "INSERT INTO organizations (id, name, configured) VALUES ('x', 'x', 1) RETURNING id",
    'PRAGMA journal_mode = DELETE',
    "ATTACH 'other.db' AS other",
    "VACUUM INTO 'copy.db'",
    'SELECT 1; DELETE FROM orders',
    'SELEC 1',
    'SELECT nothing FROM orders',
    "SELECT json('{')",
    '',
  ])('refuses (%s) with 2, says why, and changes nothing', async (sql) => {
    const { code, stdout, stderr } = await query(sql)

    expect(code).toBe(2)
    expect(stdout).toBe('')
    expect(stderr).toMatch(/\S/)
    expect(stderr).not.toMatch(/ at .*:\d+:\d+/)
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(2)
    expect(fs.readdirSync(workspace.folder).filter((name) => /^(other|copy)/.test(name))).toEqual([])
  })

  it('says where the names are that it knows', async () => {
    const ended = await Promise.all([query('SELECT totl FROM orders'), query('SELECT * FROM ordrs')])

    expect(ended.map(({ stderr }) => stderr)).toEqual(
      ['column: totl', 'table: ordrs'].map((what) =>
        expect.stringContaining(`no such ${what}; "admin-mirror describe" lists the names`),
      ),
    )
  })

  it.each([
    'EXPLAIN QUERY PLAN SELECT * FROM orders',
    'PRAGMA table_info(orders)',
    'WITH a AS (SELECT 1) SELECT * FROM a',
  ])('runs (%s), which reads', async (sql) => {
    const { code, stdout } = await query(sql)

    expect(code).toBe(0)
    expect(stdout).not.toBe('')
  })

  it('ends in peace when nobody reads on', async () => {
    const endless = 'WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n'
    const running = workspace.start(['query', endless, '--format', 'csv'])
    await running.firstLine()

    running.closeStdout()

    expect(await running.ended).toMatchObject({ code: 0, stderr: '' })
  })

  it('is ended by a signal while SQLite computes', async () => {
    // A row so long that it is written at once, and after it nothing for ever.
    const sql = `
      SELECT hex(zeroblob(50000)) AS text
      UNION ALL
      SELECT i FROM (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n) WHERE i < 0
    `
    const running = workspace.start(['query', sql, '--format', 'csv'])
    await running.firstLine()

    running.kill('SIGTERM')

    const { code, signal } = await running.ended
    expect([code, signal]).toEqual([null, 'SIGTERM'])
  })

  it('exits with 4 where there is no mirror yet, and makes none', async () => {
    const place = createWorkspace({ baseUrl: 'http://127.0.0.1:1', organizations: [organization('acme', 1)] })

    const { code, stderr } = await place.run(['query', 'SELECT 1'])

    expect(code).toBe(4)
    expect(stderr).toContain('admin-mirror sync')
    expect(fs.existsSync(place.mirror)).toBe(false)
  })

  it('needs no token', async () => {
    const place = createWorkspace()
    fs.copyFileSync(workspace.mirror, place.mirror)
    place.configure({
      baseUrl: 'http://127.0.0.1:1',
      organizations: [organization('acme', 1, { token: variable('NOT_SET') })],
    })

    expect((await place.run(['query', 'SELECT 1'])).code).toBe(0)
  })
})

describe.concurrent('resume', () => {
  it('before the first sync has nothing to do, and makes no mirror', async () => {
    const fresh = createWorkspace({
      baseUrl: 'http://127.0.0.1:1',
      organizations: [organization('acme', 1)],
    })

    const { code, stdout, stderr } = await fresh.run(['resume'])

    expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
    expect(stderr).toMatch(/nothing to resume/)
    expect(fs.readdirSync(fresh.folder)).toEqual(['admin-mirror.yaml'])
  })
})
