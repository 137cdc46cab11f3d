import { describe, expect, it } from 'vitest'
import { type Asked, createDoor, items, type ListServer, pageOf, serve } from './list-server.ts'
import { createWorkspace, organization, type Workspace } from './workspace.ts'
import { written } from './written.ts'

// Staging and production beside each other, one of them with the other's database.

const ITEMS = items(10)
const ADDRESS = "SELECT value FROM sync_settings WHERE name = 'address'"
const ORGANIZATIONS = [organization('acme', 1)]

async function createScene(reply = async (asked: Asked) => pageOf(ITEMS, asked)) {
  const server = await serve(reply)
  const workspace = createWorkspace({ baseUrl: `${server.url}/prod`, organizations: ORGANIZATIONS })
  const use = (baseUrl: string) => workspace.configure({ baseUrl, organizations: ORGANIZATIONS })
  return { server, workspace, use }
}

/** All that the mirror holds, and how often it was asked for. */
function everything({ rows }: Workspace, { asked }: ListServer) {
  const names = rows<{ name: string }>("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
  return [names.map(({ name }) => rows(`SELECT * FROM "${name}"`)), asked.length]
}

describe.concurrent('a mirror with the lists of another address', () => {
  it.each([['sync'], ['backfill', '--org', 'acme'], ['verify'], ['start'], ['sync', '--accept-removals']])(
    'is refused by %s %s, and nothing is sent or written',
    async (...args) => {
      const { server, workspace, use } = await createScene()
      await workspace.run(['sync'])
      const before = everything(workspace, server)

      for (const other of [
        `${server.url}/staging`,
        server.url,
        `http://localhost${new URL(server.url).port}/prod`,
      ]) {
        use(other)
        const { code, stdout, stderr } = await workspace.run(args)

        expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
        expect(stderr).toContain('holds the lists of 127.0.0.1/prod')
        expect(stderr).toContain(
          `names ${new URL(other).hostname}${new URL(other).pathname.replace(/\/$/, '')}:`,
        )
        expect(stderr).toContain('admin-mirror sync --accept-address')
      }
      expect(everything(workspace, server)).toEqual(before)
    },
  )

  it('is accepted by sync --accept-address, for good', async () => {
    const { server, workspace, use } = await createScene()
    await workspace.run(['sync'])
    use(`${server.url}/v2`)

    const accepted = await workspace.run(['sync', '--accept-address'])
    const next = await workspace.run(['sync'])
    use(`${server.url}/prod`)
    const former = await workspace.run(['sync'])

    expect([accepted.code, next.code, former.code]).toEqual([0, 0, 2])
    expect(server.asked.at(-1)?.path).toBe('/v2/api/v1/admin/orders')
    expect(workspace.value(ADDRESS)).toBe('127.0.0.1/v2')
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(10)
  })

  it('is read and worked on by the commands that send nothing', async () => {
    const { server, workspace, use } = await createScene()
    await workspace.run(['sync'])
    use(`${server.url}/staging`)

    const codes = []
    for (const args of [
      ['status'],
      ['query', 'SELECT 1'],
      ['export', 'orders', '--format', 'csv'],
      ['resume'],
      ['rebuild'],
      ['forget', '--org', 'acme', '--yes'],
    ])
      codes.push((await workspace.run(args)).code)

    expect(codes).toEqual([0, 0, 0, 0, 0, 0])
    // Nothing is left that another address's lists could come among.
    expect((await workspace.run(['sync'])).code).toBe(0)
  })

  it('has its open walk go on once the address is accepted', async () => {
    const door = createDoor()
    const { server, workspace, use } = await createScene(async (asked) => {
      if (asked.page === 4 && asked.path.startsWith('/prod')) await door.opened
      return pageOf(ITEMS, asked)
    })
    const killed = workspace.start(['sync'])
    await server.arrival(({ page }) => page === 4)
    await written(workspace, 4)
    killed.kill('SIGKILL')
    await killed.ended
    server.asked.length = 0
    use(`${server.url}/v2`)

    const refused = await workspace.run(['sync'])
    const accepted = await workspace.run(['sync', '--accept-address'])

    expect([refused.code, accepted.code]).toEqual([2, 0])
    expect(server.asked.map(({ page }) => page)).toEqual([3, 4, 5, 2])
    expect(workspace.rows('SELECT status, coverage FROM sync_walks')).toEqual([
      { status: 'complete', coverage: 'steady' },
    ])
  })
})

describe.concurrent('the same address', () => {
  it('may have another port, a slash at its end, and a host in capitals', async () => {
    const { workspace, use } = await createScene()
    await workspace.run(['sync'])
    const other = await serve((asked) => pageOf(ITEMS, asked))

    for (const baseUrl of [
      `${other.url}/prod`,
      `${other.url}/prod/`,
      `HTTP://127.0.0.1:${new URL(other.url).port}/prod`,
    ]) {
      use(baseUrl)
      expect((await workspace.run(['sync'])).code).toBe(0)
    }
    expect(other.asked.length).toBeGreaterThan(3)
  })

  it('is noted by the first command that asks for pages, of a mirror from before there was such a note', async () => {
    const { workspace } = await createScene()
    await workspace.run(['sync'])
    workspace.change("DELETE FROM sync_settings WHERE name = 'address'")

    const verify = await workspace.run(['verify'])

    expect(verify.code).toBe(0)
    expect(workspace.value(ADDRESS)).toBe('127.0.0.1/prod')
  })
})
