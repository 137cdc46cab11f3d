import fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { items, type ListServer, pageOf, serve } from './list-server.ts'
import { createWorkspace, organization } from './workspace.ts'

const ACME = organization('acme', 1)
const GLOBEX = organization('globex', 2)

/** A server whose orders a test may change. */
async function createScene() {
  const lists: Record<string, unknown[]> = { [ACME.id]: items(6), [GLOBEX.id]: items(2) }
  const broken = new Set<string>()
  const server: ListServer = await serve((asked) =>
    broken.has(asked.organization)
      ? { status: 403, body: { message: 'no' } }
      : pageOf(lists[asked.organization] ?? [], asked),
  )
  const workspace = createWorkspace({ baseUrl: server.url, organizations: [ACME, GLOBEX] })
  return { lists, broken, server, workspace }
}

const STATE = `
  SELECT * FROM sync_jobs JOIN orders_raw ON orders_raw._organization_id = sync_jobs.organization_id
`

describe.concurrent('verify', () => {
  it('exits with 0 where all is the same, and with 5 where something differs', async () => {
    const { lists, workspace } = await createScene()
    await workspace.run(['sync'])
    const before = workspace.rows(STATE)

    const same = await workspace.run(['verify'])
    lists[ACME.id] = [{ id: 2, state: 'a secret value' }, ...items(5).slice(2), { id: 7 }]
    const apart = await workspace.run(['verify'])

    expect(same).toMatchObject({
      code: 0,
      stdout:
        'acme orders: no difference (6 items, steady)\nglobex orders: no difference (2 items, steady)\n',
    })
    expect(apart.code).toBe(5)
    expect(apart.stdout.split('\n')).toEqual([
      'missing acme orders 7',
      'extra acme orders 1',
      'extra acme orders 6',
      'different acme orders 2 state',
      'acme orders: 1 missing, 2 extra, 1 different (5 items, steady)',
      'globex orders: no difference (2 items, steady)',
      '',
    ])
    expect(apart.stdout + apart.stderr).not.toMatch(/secret value/)
    expect(apart.logs.filter(({ msg }) => msg === 'verified')).toHaveLength(2)
    expect(workspace.rows(STATE)).toEqual(before)
    expect(workspace.value('SELECT count(*) FROM sync_runs')).toBe(2)
  })

  it('exits with 1 where the list cannot tell whether the mirror has too much, which status and sync tell, too', async () => {
    const { lists, workspace } = await createScene()
    await workspace.run(['sync'])
    const [first, , third, fourth] = items(6)
    lists[ACME.id] = [first, first, third, fourth]

    const verified = await workspace.run(['verify', '--org', 'acme'])
    const synced = await workspace.run(['sync'])
    const status = await workspace.run(['status'])

    const why = '3 items came of a total of 4, 1 of them twice'
    const note = `nothing is removed on the word of this reading: ${why}`
    expect([verified, synced].map(({ code }) => code)).toEqual([1, 0])
    expect(verified.stdout).toContain('this reading cannot say whether')
    expect(synced.logs.map(({ msg }) => msg)).toContain(note)
    expect(status.stdout).toContain(note.replace('this', 'its last'))
    expect(status.stdout).toContain('1 of 2 lists was read without certainty')
  })

  it.each([
    ['a refused list goes before a difference', [GLOBEX.id], 3],
    ['a difference alone', [], 5],
  ])('%s: the exit code', async (_, refused, code) => {
    const { lists, broken, workspace } = await createScene()
    await workspace.run(['sync'])
    lists[ACME.id] = items(7)
    for (const id of refused) broken.add(id)

    const ended = await workspace.run(['verify'])

    expect(ended.code).toBe(code)
    expect(ended.stdout).toMatch(/missing acme orders 7/)
    if (code === 3) expect(ended.stdout).toMatch(/^globex orders: not verified: FORBIDDEN: /m)
  })

  it('makes no mirror where there is none, and sends nothing', async () => {
    const { server, workspace } = await createScene()

    const ended = await workspace.run(['verify'])

    expect(ended.code).toBe(4)
    expect(ended.stderr).toMatch(/there is no mirror at .* yet; "admin-mirror sync" makes it/)
    expect(fs.readdirSync(workspace.folder)).toEqual(['admin-mirror.yaml'])
    expect(server.asked).toEqual([])
  })

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('stops at %s, and leaves nothing behind', async (signal, code) => {
    const { server, workspace } = await createScene()
    await workspace.run(['sync', '--org', 'acme'])
    const standing = await serve((asked) =>
      asked.page === 2 ? new Promise(() => {}) : pageOf(items(6), asked),
    )
    workspace.configure({ baseUrl: standing.url, organizations: [ACME] })
    const verify = workspace.start(['verify'])
    await standing.arrival(({ page }) => page === 2)

    verify.kill(signal)
    const ended = await verify.ended
    workspace.configure({ baseUrl: server.url, organizations: [ACME] })
    const again = await workspace.run(['verify'])

    expect(ended.code).toBe(code)
    expect(workspace.rows('SELECT owner, rows FROM sync_jobs WHERE rows > 0')).toEqual([
      { owner: null, rows: 6 },
    ])
    expect(again.code).toBe(0)
    expect(fs.readdirSync(workspace.folder).filter((name) => !/^mirror\.db|yaml$/.test(name))).toEqual([])
  })

  it('tells a list that was never synced, with one request', async () => {
    const { server, workspace } = await createScene()
    await workspace.run(['sync', '--org', 'acme'])
    server.asked.length = 0

    const ended = await workspace.run(['verify', '--org', 'globex'])

    expect(ended).toMatchObject({
      code: 5,
      stdout: 'globex orders: never synced: all 2 items are missing\n',
    })
    expect(server.asked).toHaveLength(1)
  })
})
