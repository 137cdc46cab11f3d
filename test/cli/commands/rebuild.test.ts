import { expect } from 'vitest'
import { sceneTests } from '../../helpers/scene.ts'

const it = sceneTests().override({
  options: { settings: { collections: { orders: {}, establishments: {} } } },
})

it('rebuild makes the collections anew that are named, or all, without a request', async ({ synced }) => {
  const { workspace, server } = synced
  const damage = "UPDATE orders SET state = 'wrong'; UPDATE establishments SET state = 'wrong'"
  const wrong = () =>
    ['orders', 'establishments'].map((name) =>
      workspace.value(`SELECT count(*) FROM ${name} WHERE state = 'wrong'`),
    )
  workspace.change(damage)

  const one = await workspace.run(['rebuild', 'orders'])
  const left = wrong()
  const all = await workspace.run(['rebuild'])

  expect(one).toMatchObject({ code: 0, stdout: 'orders: 4 rows rebuilt, 0 views\n' })
  expect(left).toEqual([0, 4])
  expect(all.stdout).toMatch(/^establishments: 4 rows .*\norders: 4 rows .*\n$/)
  expect(wrong()).toEqual([0, 0])
  expect(server.asked).toEqual([])
})
