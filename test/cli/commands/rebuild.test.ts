import { describe, expect, it } from 'vitest'
import { items, pageOf, serve } from '../../helpers/list-server.ts'
import { createWorkspace, organization } from '../../helpers/workspace.ts'

async function createScene() {
  const server = await serve((asked) => pageOf(items(4), asked))
  const workspace = createWorkspace({
    baseUrl: server.url,
    organizations: [organization('acme', 1)],
    collections: { orders: {}, establishments: {} },
  })
  return { server, workspace }
}

describe('rebuild', () => {
  it('makes the collections anew that are named, or all, without a request', async () => {
    const { server, workspace } = await createScene()
    await workspace.run(['sync'])
    server.asked.length = 0
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
})
