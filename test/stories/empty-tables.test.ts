import { expect } from 'vitest'
import { type Scene, sceneTests } from '../helpers/scene.ts'

const it = sceneTests()

const COLLECTIONS = { orders: {}, invoices: { key: ['number', 'line.no'] }, establishments: false }
const ALL = ['invoices', 'invoices_history', 'invoices_json', 'orders', 'orders_history', 'orders_json']

function tables({ workspace }: Scene): string[] {
  const sql = `
    SELECT name FROM sqlite_schema
    WHERE type = 'table' AND (name LIKE 'orders%' OR name LIKE 'invoices%')
    ORDER BY name`
  return workspace.rows<{ name: string }>(sql).map(({ name }) => name)
}

it('the tables of a configured collection are there from the first command on that writes the mirror, whatever the API says', async ({
  scene,
}) => {
  const { workspace, api, configure } = scene
  configure({ collections: COLLECTIONS })
  api.instead = () => ({ status: 403, body: {} })
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
  expect((await run('forget --org acme --collection invoices --yes')).code).toBe(0)
})

it('they are made by verify and resume, too, and never in place of what a user made, which fails the run of that job', async ({
  synced,
}) => {
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
  workspace.change('DROP VIEW Invoices_Raw')
  expect((await workspace.run(['resume'])).code).toBe(0)
  expect(tables(synced)).toEqual(ALL)
})
