import { describe, expect, it } from 'vitest'
import { createDoor, items, pageOf, serve } from './list-server.ts'
import { createWorkspace, organization, variable } from './workspace.ts'

const ACME = organization('acme', 1)
const GLOBEX = organization('globex', 2)

async function createScene() {
  const server = await serve((asked) => pageOf(items(4), asked))
  const collections = { orders: {}, establishments: {} }
  const workspace = createWorkspace({ baseUrl: server.url, organizations: [ACME, GLOBEX], collections })
  await workspace.run(['sync'])
  server.asked.length = 0
  return { server, workspace, collections }
}

const FORGET_ACME = ['forget', '--org', 'acme', '--yes']

/** For commands that are to change nothing. */
let untouched: ReturnType<typeof createScene> | undefined

describe.concurrent('forget', () => {
  it.each<[string, string[], RegExp]>([
    [
      'without --yes, and says what would go',
      ['--org', 'acme'],
      /acme establishments: 4 rows.*\n.*acme orders: 4 rows, 0 superseded versions, 0 rejects, 1 walk with \d pages, 1 run/,
    ],
    ['without --org', ['--yes'], /one --org/],
    ['with two of them', ['--org', 'acme', '--org', 'globex', '--yes'], /one --org/],
    ['of an organization that nobody knows', ['--org', 'initech', '--yes'], /initech.*acme, globex/],
    [
      'of a collection that it does not have',
      ['--org', 'acme', '--collection', 'items', '--yes'],
      /items.*establishments, orders/,
    ],
  ])('%s exits with 2 and deletes nothing', async (_, options, message) => {
    untouched ??= createScene()
    const { workspace } = await untouched

    const ended = await workspace.run(['forget', ...options])

    expect(ended.code).toBe(2)
    expect(ended.stderr).toMatch(message)
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(8)
  })

  it('deletes one list, without a token and a request, and the next sync reads it anew', async () => {
    const { server, workspace, collections } = await createScene()
    const tokenless = [ACME, GLOBEX].map((one) => ({ ...one, token: variable('NOBODY_SET_THIS') }))
    workspace.configure({ baseUrl: server.url, organizations: tokenless, collections })

    const ended = await workspace.run(['forget', '--org', ACME.id, '--collection', 'orders', '--yes'])

    expect(ended).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^forgot acme orders: 4 rows, .*1 run\n$/),
    })
    expect(ended.stderr).toContain('still names acme, so the next sync reads orders again')
    expect(server.asked).toEqual([])
    expect(
      workspace.rows('SELECT organization, collection, rows FROM sync_status ORDER BY 1, 2'),
    ).toMatchObject([
      { organization: 'acme', collection: 'establishments', rows: 4 },
      { organization: 'acme', collection: 'orders', rows: 0 },
      { organization: 'globex', rows: 4 },
      { organization: 'globex', rows: 4 },
    ])
    workspace.configure({ baseUrl: server.url, organizations: [ACME, GLOBEX], collections })
    const sync = await workspace.run(['sync'])
    expect(sync.code).toBe(0)
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(8)
  })

  it('deletes an organization that left the configuration, and status names the command', async () => {
    const { server, workspace, collections } = await createScene()
    workspace.configure({ baseUrl: server.url, organizations: [GLOBEX], collections })

    const before = await workspace.run(['status'])
    const kept = workspace.value(`SELECT count(*) FROM orders WHERE _organization_id = '${ACME.id}'`)
    const forget = await workspace.run(FORGET_ACME)
    const after = await workspace.run(['status'])
    const again = await workspace.run(FORGET_ACME)

    expect(kept).toBe(4)
    expect(before.stdout).toMatch(
      /acme orders.*\n.*no longer in the configuration.*admin-mirror forget --org [-0-9a-f]{36} --collection orders$/m,
    )
    expect(forget.code).toBe(0)
    expect(after.stdout).not.toMatch(/acme/)
    expect(workspace.rows('SELECT name FROM organizations')).toEqual([{ name: 'globex' }])
    expect(again.code).toBe(2)
  })

  it('leaves a job alone that is being synced, and deletes the others', async () => {
    const door = createDoor()
    const { workspace, collections } = await createScene()
    const server = await serve(async (asked) => {
      if (asked.collection === 'orders') await door.opened
      return pageOf(items(4), asked)
    })
    workspace.configure({ baseUrl: server.url, organizations: [ACME], collections })
    const sync = workspace.start(['sync', '--collection', 'orders'])
    await server.arrival(({ collection }) => collection === 'orders')

    const forget = await workspace.run(FORGET_ACME)
    door.open()
    const synced = await sync.ended

    expect(forget.code).toBe(1)
    expect(forget.stderr).toMatch(/BUSY: acme orders: .*nothing of it was deleted/)
    expect(forget.stdout).toMatch(/^forgot acme establishments: 4 rows/)
    expect(synced.code).toBe(0)
    expect(workspace.value(`SELECT count(*) FROM orders WHERE _organization_id = '${ACME.id}'`)).toBe(4)
  })

  it('lets a collection have another key, which is refused before the first request until then', async () => {
    const { server, workspace, collections } = await createScene()
    const byState = { ...collections, orders: { key: ['id', 'state'] } }
    workspace.configure({ baseUrl: server.url, organizations: [ACME, GLOBEX], collections: byState })

    const refused = await workspace.run(['sync', '--collection', 'orders'])
    const asked = server.asked.length
    const forgets = [
      await workspace.run(['forget', '--org', 'acme', '--collection', 'orders', '--yes']),
      await workspace.run(['forget', '--org', 'globex', '--collection', 'orders', '--yes']),
    ]
    const accepted = await workspace.run(['sync', '--collection', 'orders'])

    expect([refused.code, asked]).toEqual([1, 0])
    expect(refused.logs.filter(({ error_code: code }) => code === 'CONFIGURATION')).toHaveLength(2)
    expect(refused.stderr).toMatch(
      /key id, .*says id, state: .*admin-mirror forget --org ORG --collection orders/,
    )
    expect(forgets.map(({ code }) => code)).toEqual([0, 0])
    expect(forgets[1]?.stdout).toMatch(/nothing is left of orders/)
    expect(accepted.code).toBe(0)
    expect(workspace.rows("SELECT name FROM pragma_table_info('orders') WHERE pk > 0")).toHaveLength(3)
  })
})
