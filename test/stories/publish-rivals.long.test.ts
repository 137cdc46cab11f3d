import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { items, pageOf, serve } from '../helpers/list-server.ts'
import { createWorkspace, organization, type Workspace } from '../helpers/workspace.ts'

// Two mirrors whose configurations name one file as `publish`. Whose file it is: test/store/sqlite/publish/origin.test.ts.

const COPY = 'published/copy.db'

/** Two configurations in one folder, by name: each has a mirror of its own, and both publish to one file. */
async function createScene() {
  const workspace = createWorkspace()
  const lists = { production: items(6), staging: items(2) }
  const servers = {
    production: await serve((asked) => pageOf(lists.production, asked)),
    staging: await serve((asked) => pageOf(lists.staging, asked)),
  }
  const as = (name: keyof typeof lists) =>
    workspace.configure({
      baseUrl: servers[name].url,
      organizations: [organization('acme', 1)],
      schedule: '0 0 29 2 *',
      refresh: false,
      database: `${name}/mirror.db`,
      publish: COPY,
    })
  return { workspace, lists, as }
}

function publishedRows(workspace: Workspace): number {
  const connection = new Database(workspace.file(COPY), { readonly: true })
  try {
    return connection.prepare('SELECT count(*) FROM orders').pluck().get() as number
  } finally {
    connection.close()
  }
}

async function sync(workspace: Workspace) {
  const { code, logs } = await workspace.run(['sync'])
  expect(code).toBe(0)
  return logs.find(({ event }) => event === 'publish_failed')?.reason ?? null
}

describe.concurrent('a published file', () => {
  it("is not replaced by another mirror's, which says so with what to do; check says it, too", async () => {
    const { workspace, lists, as } = await createScene()
    as('production')
    expect(await sync(workspace)).toBeNull()

    as('staging')
    const reason = await sync(workspace)
    const checked = await workspace.run(['check', '--offline'])
    const kept = publishedRows(workspace)
    as('production')
    lists.production = items(7)

    expect(reason).toMatch(
      /copy\.db is the copy of another mirror, made at 20\S+Z, so .* Give each configuration a "publish" of its own\. If .* delete .*copy\.db$/,
    )
    expect([checked.code, checked.stdout]).toEqual([
      2,
      expect.stringMatching(/^fail {2}publish .*copy of another mirror/m),
    ])
    expect(kept).toBe(6)
    expect(await sync(workspace)).toBeNull()
    expect(publishedRows(workspace)).toBe(7)
    expect((await workspace.run(['check', '--offline'])).code).toBe(0)
  })
})
