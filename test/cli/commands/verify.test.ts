import fs from 'node:fs'
import { describe, expect } from 'vitest'
import { items } from '../../helpers/list-server.ts'
import { ACME, GLOBEX, sceneTests } from '../../helpers/scene.ts'

const it = sceneTests()

// verify at the command. How lists are compared: test/sync/verify.test.ts; what is printed: output/differences.test.ts.

const STATE =
  'SELECT * FROM sync_jobs JOIN orders_raw ON orders_raw._organization_id = sync_jobs.organization_id'

describe('verify', () => {
  it.override({ options: { list: items(6), settings: { organizations: [ACME, GLOBEX] } } })

  it('exits with 0 where all is the same, with 5 where something differs, and with 3 where a list is refused', async ({
    synced: { workspace, api },
  }) => {
    const before = workspace.rows(STATE)
    const run = () => workspace.run(['verify'])

    const same = await run()
    api.list = [{ id: 2, state: 'a secret value' }, ...items(5).slice(2), { id: 7 }]
    api.instead = ({ organization }) =>
      organization === GLOBEX.id ? { body: { data: items(6), links: { next: null } } } : null
    const apart = await run()
    api.instead = ({ organization }) => (organization === GLOBEX.id ? { status: 403, body: {} } : null)
    const refused = await run()

    expect(same).toMatchObject({
      code: 0,
      stdout:
        'acme orders: no difference (6 items, steady)\nglobex orders: no difference (6 items, steady)\n',
    })
    expect([apart.code, refused.code]).toEqual([5, 3])
    expect(apart.stdout.split('\n')).toEqual([
      'missing acme orders 7',
      'extra acme orders 1',
      'extra acme orders 6',
      'different acme orders 2 state',
      'acme orders: 1 missing, 2 extra, 1 different (5 items, steady)',
      'globex orders: no difference (6 items, steady)',
      '',
    ])
    expect(apart.stdout + apart.stderr).not.toMatch(/secret value/)
    expect(apart.logs.filter(({ msg }) => msg === 'verified')).toHaveLength(2)
    expect(refused.stdout).toMatch(/^globex orders: not verified: FORBIDDEN: /m)
    expect(workspace.rows(STATE)).toEqual(before)
    expect(workspace.value('SELECT count(*) FROM sync_runs')).toBe(2)
  })

  it('exits with 1 where the list cannot tell whether the mirror has too much, which status and sync tell, too', async ({
    synced: { workspace, api },
  }) => {
    const [first, , third, fourth] = items(6)
    api.list = [first, first, third, fourth]

    const verified = await workspace.run(['verify', '--org', 'acme'])
    const synced = await workspace.run(['sync', '--org', 'acme'])
    const status = await workspace.run(['status'])

    const why = '3 items came of a total of 4, 1 of them twice'
    const note = `this walk removed nothing: ${why}`
    expect([verified, synced].map(({ code }) => code)).toEqual([1, 0])
    expect(verified.stdout).toContain('this reading cannot say whether')
    expect(synced.logs.map(({ msg }) => msg)).toContain(note)
    expect(status.stdout).toContain(note.replace('this', 'its last'))
    expect(status.stdout).toContain('1 of 2 lists was read, but something may be missing')
  })

  it('stops at a signal, and leaves nothing behind', async ({ synced: { workspace, api, server } }) => {
    api.instead = ({ page }) => (page === 2 ? new Promise(() => {}) : null)
    const verify = workspace.startHere(['verify', '--org', 'acme'])
    await server.arrival(({ page }) => page === 2)

    verify.kill('SIGINT')
    const { code } = await verify.ended
    api.instead = () => null

    expect(code).toBe(130)
    expect(workspace.rows('SELECT DISTINCT owner, rows FROM sync_jobs')).toEqual([{ owner: null, rows: 6 }])
    expect((await workspace.run(['verify'])).code).toBe(0)
    expect(fs.readdirSync(workspace.folder).filter((name) => !/^mirror\.db|yaml$/.test(name))).toEqual([])
  })
})
