import { describe, expect } from 'vitest'
import { type Scene, sceneTests } from '../helpers/scene.ts'

const it = sceneTests()

// The tables of a configured collection before its first row comes.

const COLLECTIONS = { orders: {}, invoices: { key: ['number', 'line.no'] }, establishments: false }
const ALL = ['invoices', 'invoices_history', 'invoices_json', 'orders', 'orders_history', 'orders_json']
const refused = () => ({ status: 403, body: {} })

function tables({ workspace }: Scene): string[] {
  const sql = `
    SELECT name FROM sqlite_schema
    WHERE type = 'table' AND (name LIKE 'orders%' OR name LIKE 'invoices%')
    ORDER BY name`
  return workspace.rows<{ name: string }>(sql).map(({ name }) => name)
}

describe('the tables of a configured collection', () => {
  it('are there from the first command on that writes the mirror, whatever the API says, and empty for every command', async ({
    scene,
  }) => {
    const { workspace, api, configure } = scene
    configure({ collections: COLLECTIONS })
    api.instead = refused
    const run = async (line: string) => {
      const { code, stdout } = await workspace.run(line.split(' '))
      return { code, stdout }
    }

    expect((await run('sync --collection orders')).code).toBe(3)
    expect(tables(scene)).toEqual(ALL)
    expect(await run('export invoices --format csv')).toEqual({
      code: 0,
      stdout: '_organization_id,_first_seen_at,_changed_at,number,line__no\n',
    })
    expect(await run('export invoices --format ndjson')).toEqual({ code: 0, stdout: '' })
    expect((await run('status')).stdout).toMatch(/acme invoices +(never|0 rows)/)
    expect((await run('verify --collection invoices')).code).toBe(3)
    expect((await run('forget --org acme --collection invoices --yes')).code).toBe(0)
    expect(workspace.rows('SELECT * FROM invoices')).toEqual([])
    expect(workspace.rows('SELECT * FROM sync_columns')).toEqual([])
  })

  it('are made by every other command that writes, too, in a mirror that has none of them yet', async ({
    synced,
  }) => {
    const { workspace, configure } = synced
    configure({ collections: COLLECTIONS })
    for (const line of ['resume', 'verify --collection orders', 'forget --org acme --yes']) {
      expect((await workspace.run(line.split(' '))).code, line).toBe(0)
      expect(tables(synced), line).toEqual(ALL)
      workspace.change(
        ALL.slice(0, 3)
          .map((name) => `DROP TABLE ${name};`)
          .join('') +
          "DROP VIEW invoices_raw; DROP VIEW invoices_versions; DROP VIEW invoices_changes; DELETE FROM sync_collections WHERE name = 'invoices'",
      )
    }
  })

  it('are made again for another key, as long as they are empty', async ({
    scene: { workspace, configure },
  }) => {
    const syncBy = async (key: string | string[]) => {
      configure({ collections: { orders: { key }, establishments: false } })
      return workspace.run(['sync'])
    }
    // No item has such a field: all of them are rejected.
    const first = await syncBy('nr')
    workspace.change("UPDATE sync_walks SET status = 'open', next_page = 1")
    const ended = [first, await syncBy(['id', 'state']), await syncBy('id')]

    // The first one knows its items by the other key.
    expect(workspace.value('SELECT status FROM sync_walks ORDER BY id LIMIT 1')).toBe('abandoned')
    expect(ended.map(({ code }) => code)).toEqual([0, 0, 1])
    expect(workspace.rows("SELECT name FROM pragma_index_info('orders_by_key') WHERE seqno > 0")).toEqual([
      { name: 'id' },
      { name: 'state' },
    ])
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(4)
    expect(ended[2]?.stderr).toMatch(/keeps orders by the key id, state/)
  })

  it('are not made in place of what a user made, which the run of the job says', async ({ synced }) => {
    const { workspace, server, configure } = synced
    workspace.change('CREATE VIEW Invoices_Raw AS SELECT 1')
    configure({ collections: COLLECTIONS })

    const { code, stderr } = await workspace.run(['sync'])

    expect(code).toBe(1)
    expect(stderr).toMatch(
      /CONFIGURATION.*it has a view Invoices_Raw already: give the collection another name/,
    )
    expect(server.asked.map(({ collection }) => collection)).not.toContain('invoices')
    expect(tables(synced)).toEqual(['orders', 'orders_history', 'orders_json'])
  })
})
