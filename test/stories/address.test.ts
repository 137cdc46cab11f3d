import { describe, expect } from 'vitest'
import { type Scene, sceneTests } from '../helpers/scene.ts'

const it = sceneTests()

// Staging and production beside each other, one of them with the other's database. Which addresses are the same one:
// test/store/sqlite/store.test.ts.

/** All rows of the mirror, and how often it was asked for pages. */
function everything({ workspace: { rows }, server }: Scene) {
  const names = rows<{ name: string }>("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
  return [names.map(({ name }) => rows(`SELECT * FROM "${name}"`)), server.asked.length]
}

/** Another path of the same host. */
const moveTo = (path: string, { server, configure }: Scene) => configure({ baseUrl: `${server.url}/${path}` })

describe('a mirror with the lists of another address', () => {
  it('is refused by every command that sends, which sends and writes nothing; others work on', async ({
    synced,
  }) => {
    const { run } = synced.workspace
    const before = everything(synced)
    moveTo('staging', synced)

    for (const line of ['sync', 'backfill --org acme', 'verify', 'start', 'sync --accept-removals']) {
      const { code, stdout, stderr } = await run(line.split(' '))
      expect({ line, code, stdout }).toEqual({ line, code: 2, stdout: '' })
      expect(stderr).toMatch(/holds the lists of 127\.0\.0\.1[: ,].*names 127\.0\.0\.1\/staging:/)
      expect(stderr).toContain('admin-mirror sync --accept-address')
    }
    expect(everything(synced)).toEqual(before)
    // After `forget` nothing is left that another address's lists could come among.
    for (const line of ['status', 'export orders --format csv', 'resume', 'forget --org acme --yes', 'sync'])
      expect(await run(line.split(' ')), line).toMatchObject({ code: 0 })
  })

  it('is accepted by sync --accept-address, for good, and its open walk goes on', async ({ scene }) => {
    const { api, server, workspace } = scene
    api.instead = ({ page, path }) =>
      page === 2 && !path.startsWith('/v2') ? { status: 403, body: {} } : null
    await workspace.run(['sync'])
    moveTo('v2', scene)

    const refused = await workspace.run(['sync'])
    server.asked.length = 0
    const accepted = await workspace.run(['sync', '--accept-address'])
    const pages = server.asked.map(({ path, page }) => `${path} ${page}`)
    const next = await workspace.run(['sync'])
    moveTo('', scene)
    const former = await workspace.run(['sync'])

    expect([refused, accepted, next, former].map(({ code }) => code)).toEqual([2, 0, 0, 2])
    expect(pages).toEqual([1, 2, 1].map((page) => `/v2/api/v1/admin/orders ${page}`))
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(4)
  })
})
