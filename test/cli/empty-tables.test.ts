import { describe, expect, it } from 'vitest'
import { items, pageOf, type Reply, serve } from './list-server.ts'
import { createWorkspace, organization } from './workspace.ts'

// The tables of a configured collection before its first row comes.

const ACME = organization('acme', 1)
const COLLECTIONS = { orders: {}, invoices: { key: ['number', 'line.no'] }, establishments: false }

const TABLES = `
  SELECT name FROM sqlite_schema
  WHERE type = 'table' AND (name LIKE 'orders%' OR name LIKE 'invoices%')
  ORDER BY name
`
const ALL = ['invoices', 'invoices_history', 'invoices_raw', 'orders', 'orders_history', 'orders_raw']

async function createScene(reply?: () => Reply, collections: object = COLLECTIONS) {
  const server = await serve((asked) => reply?.() ?? pageOf(items(4), asked))
  const configure = (changed: object) =>
    workspace.configure({ baseUrl: server.url, organizations: [ACME], collections: changed })
  const workspace = createWorkspace({ baseUrl: server.url, organizations: [ACME], collections })
  const tables = () => workspace.rows<{ name: string }>(TABLES).map(({ name }) => name)
  return { server, workspace, configure, tables }
}

const refused = () => ({ status: 403, body: {} })

describe.concurrent('the tables of a configured collection', () => {
  it('are there from the first command on that writes the mirror, whatever the API says', async () => {
    const { workspace, tables } = await createScene(refused)

    const sync = await workspace.run(['sync', '--collection', 'orders'])
    const query = await workspace.run([
      'query',
      'SELECT _organization_id, number, line__no, _first_seen_at, _changed_at FROM invoices',
      '--format',
      'csv',
    ])

    expect(sync.code).toBe(3)
    expect(tables()).toEqual(ALL)
    expect(query).toMatchObject({
      code: 0,
      stdout: '_organization_id,number,line__no,_first_seen_at,_changed_at\n',
    })
    expect(workspace.rows('SELECT * FROM sync_columns')).toEqual([])
  })

  it.each([
    ['resume', ['resume']],
    ['rebuild', ['rebuild', 'orders']],
    ['forget', ['forget', '--org', 'acme', '--yes']],
    ['verify', ['verify', '--collection', 'orders']],
  ])('are made by %s, too, in a mirror that has none of them yet', async (_, args) => {
    const { workspace, configure, tables } = await createScene(undefined, {
      orders: {},
      establishments: false,
    })
    await workspace.run(['sync'])
    configure(COLLECTIONS)

    const { code } = await workspace.run(args)

    expect(code).toBe(0)
    expect(tables()).toEqual(ALL)
  })

  it('are empty for every command', async () => {
    const { workspace } = await createScene(refused)
    await workspace.run(['sync'])

    const run = async (...args: string[]) => {
      const { code, stdout } = await workspace.run(args)
      return { code, stdout }
    }

    expect(await run('export', 'invoices', '--format', 'ndjson')).toEqual({ code: 0, stdout: '' })
    expect(await run('rebuild', 'invoices')).toEqual({
      code: 0,
      stdout: 'invoices: 0 rows rebuilt, 0 views\n',
    })
    expect((await run('status')).stdout).toMatch(/acme invoices +0 rows/)
    expect((await run('verify', '--collection', 'invoices')).code).toBe(3)
    expect((await run('forget', '--org', 'acme', '--collection', 'invoices', '--yes')).code).toBe(0)
    expect(workspace.rows('SELECT * FROM invoices')).toEqual([])
  })

  it('take keys of texts and of numbers, without a warning', async () => {
    let isClosed = true
    const { workspace } = await createScene(() =>
      isClosed
        ? refused()
        : { body: { data: [{ id: 1, number: 'A-1', line: { no: 7 } }], links: { next: null }, meta: {} } },
    )
    await workspace.run(['sync'])
    isClosed = false

    const sync = await workspace.run(['sync', '--log-level', 'trace'])

    expect(sync.code).toBe(0)
    expect(sync.logs.filter(({ level }) => level === 'warn')).toEqual([])
    expect(workspace.rows('SELECT number, line__no FROM invoices')).toEqual([{ number: 'A-1', line__no: 7 }])
    expect(
      workspace.rows(
        `SELECT "column", type FROM sync_columns WHERE collection = 'invoices' AND role = 'key' ORDER BY 1`,
      ),
    ).toEqual([
      { column: 'line__no', type: 'INTEGER' },
      { column: 'number', type: 'TEXT' },
    ])
  })

  it('are made again for another key, as long as they are empty', async () => {
    const { workspace, configure } = await createScene(undefined, {
      orders: { key: 'nr' },
      establishments: false,
    })
    // No item has such a field: all of them are rejected.
    const rejected = await workspace.run(['sync'])
    configure({ orders: { key: ['id', 'state'] }, establishments: false })

    const sync = await workspace.run(['sync'])
    configure({ orders: { key: 'id' }, establishments: false })
    const withRows = await workspace.run(['sync'])

    expect([rejected.code, sync.code, withRows.code]).toEqual([0, 0, 1])
    expect(workspace.rows("SELECT name FROM pragma_table_info('orders') WHERE pk > 1 ORDER BY pk")).toEqual([
      { name: 'id' },
      { name: 'state' },
    ])
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(4)
    expect(withRows.stderr).toMatch(/keeps orders by the key id, state/)
  })

  it('are not made in place of what a user made, which the run of the job says', async () => {
    const { server, workspace, configure, tables } = await createScene(undefined, {
      orders: {},
      establishments: false,
    })
    await workspace.run(['sync'])
    workspace.change('CREATE VIEW Invoices_Raw AS SELECT 1')
    configure(COLLECTIONS)

    const sync = await workspace.run(['sync'])

    expect(sync.code).toBe(1)
    expect(sync.stderr).toMatch(
      /CONFIGURATION.*it has a view Invoices_Raw already: give the collection another name/,
    )
    expect(server.asked.map(({ collection }) => collection)).not.toContain('invoices')
    expect(tables()).toEqual(['orders', 'orders_history', 'orders_raw'])
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(4)
  })

  it('are not shared with a collection whose name differs in case only', async () => {
    const { workspace, configure } = await createScene(undefined, {
      items: {},
      orders: false,
      establishments: false,
    })
    await workspace.run(['sync'])
    configure({ Items: { path: '/api/v1/admin/items' }, orders: false, establishments: false })

    const sync = await workspace.run(['sync'])

    expect(sync.code).toBe(1)
    expect(sync.stderr).toMatch(/cannot make the tables of Items, since it has a table items already/)
    expect(workspace.rows('SELECT name FROM sync_collections')).toEqual([{ name: 'items' }])
  })
})
