import { expect } from 'vitest'
import { type Scene, sceneTests } from '../helpers/scene.ts'

const it = sceneTests()

const collections = { orders: {}, invoices: { key: ['number', 'line.no'] }, establishments: false }
const ALL = 'invoices,invoices_history,invoices_json,orders,orders_history,orders_json'

const tables = ({ workspace }: Scene) =>
  workspace.value(
    "SELECT group_concat(name ORDER BY name) FROM sqlite_schema WHERE type = 'table' AND (name LIKE 'orders%' OR name LIKE 'invoices%')",
  )

it('the tables and views of a configured collection are there from the first command on that writes the mirror, whatever the API says', async ({
  scene,
}) => {
  const { workspace, api, configure } = scene
  configure({ collections })
  api.instead = () => ({ status: 403, body: {} })

  expect((await workspace.run(['sync', '--collection', 'orders'])).code).toBe(3)
  expect(tables(scene)).toBe(ALL)
  for (const view of ['raw', 'versions', 'changes'])
    expect(workspace.rows(`SELECT number, line__no FROM invoices_${view}`)).toEqual([])
  const stdout = '_organization_id,number,line__no,_first_seen_at,_changed_at\n'
  expect(await workspace.run('export invoices --format csv'.split(' '))).toMatchObject({ code: 0, stdout })
})

it('they are made by resume, too, and never in place of what a user made, which fails the run of that job', async ({
  synced,
}) => {
  const { workspace, server, configure } = synced
  workspace.change('CREATE VIEW Invoices_Raw AS SELECT 1')
  configure({ collections })

  const { code, stderr } = await workspace.run(['sync'])

  const cure = /CONFIGURATION.*something else in it is called Invoices_Raw: give the collection another name/
  expect([code, stderr]).toEqual([1, expect.stringMatching(cure)])
  expect(server.asked.map(({ collection }) => collection)).not.toContain('invoices')
  workspace.change('DROP VIEW Invoices_Raw')
  expect((await workspace.run(['resume'])).code).toBe(0)
  expect(tables(synced)).toBe(ALL)
})
