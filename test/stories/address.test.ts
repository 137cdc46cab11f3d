import fs from 'node:fs'
import { expect } from 'vitest'
import { type Scene, sceneTests } from '../helpers/scene.ts'

const it = sceneTests()

// Staging and production beside each other, one of them with the other's database. Which addresses are the same one:
// test/store/sqlite/store.test.ts.

const collections = { orders: { path: '/v1/all-orders' }, establishments: false }
it.override({ options: { settings: { collections } } })

/** Another path of the same host. */
const moveTo = (path: string, { server, configure }: Scene) => configure({ baseUrl: `${server.url}/${path}` })

it('a mirror with the lists of another address is refused by every command that sends, which sends and writes nothing; others work on', async ({
  synced,
}) => {
  const { workspace, server } = synced
  const before = fs.readFileSync(workspace.mirror)
  moveTo('staging', synced)

  for (const line of ['sync', 'backfill --org acme', 'verify', 'start', 'sync --accept-removals']) {
    const { code, stdout, stderr } = await workspace.run(line.split(' '))
    expect({ line, code, stdout }).toEqual({ line, code: 2, stdout: '' })
    expect(stderr).toMatch(/holds the lists of 127\.0\.0\.1[: ,].*names 127\.0\.0\.1\/staging:/)
    expect(stderr).toContain('admin-mirror sync --accept-address')
  }
  expect([server.asked, before.equals(fs.readFileSync(workspace.mirror))]).toEqual([[], true])
  // After `forget` nothing is left that another address's lists could come among.
  for (const line of ['status', 'export orders --format csv', 'resume', 'forget --org acme --yes', 'sync'])
    expect(await workspace.run(line.split(' ')), line).toMatchObject({ code: 0 })
})

it('another address is accepted by sync --accept-address, for good, and the open walk goes on there, at the path of its list', async ({
  scene,
}) => {
  const { api, server, workspace } = scene
  api.instead = ({ page, path }) => (page === 2 && !path.startsWith('/v2') ? { status: 403, body: {} } : null)
  await workspace.run(['sync'])
  moveTo('v2', scene)

  server.asked.length = 0
  const accepted = await workspace.run(['sync', '--accept-address'])
  const pages = server.asked.map(({ path, page }) => `${path} ${page}`)
  const next = await workspace.run(['sync'])
  moveTo('', scene)
  const former = await workspace.run(['sync'])

  expect([accepted, next, former].map(({ code }) => code)).toEqual([0, 0, 2])
  expect(pages).toEqual([1, 2, 1].map((page) => `/v2/v1/all-orders ${page}`))
  expect(workspace.value('SELECT count(*) FROM orders')).toBe(4)
})
