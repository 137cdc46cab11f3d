import fs from 'node:fs'
import { describe, expect, it as plain } from 'vitest'
import { checkPublish } from '../../../src/cli/commands/check.ts'
import { createSelfSigned } from '../../api/helpers/server.ts'
import { type Reply, serve } from '../../helpers/list-server.ts'
import { ACME, GLOBEX, sceneTests } from '../../helpers/scene.ts'
import { variable } from '../../helpers/workspace.ts'

// What check finds, what it says to do, and its exit code.

const it = sceneTests()
  .override({ options: { settings: { organizations: [ACME, GLOBEX] } } })
  .extend('checking', async ({ scene }) => {
    const { workspace, api, server } = scene
    fs.chmodSync(workspace.file('admin-mirror.yaml'), 0o600)
    return {
      ...scene,
      async check() {
        const { code, stdout, stderr } = await workspace.run(['check'])
        expect(stderr).toBe('')
        const lines = stdout.trimEnd().split('\n')
        return { code, stdout, bad: lines.filter((line) => !line.startsWith('ok ')) }
      },
      refuseGlobex(reply: Reply) {
        api.instead = ({ organization }) => (organization === GLOBEX.id ? reply : null)
      },
      ofGlobex: () => server.asked.filter((asked) => asked.organization === GLOBEX.id),
    }
  })

const matching = (text: RegExp) => expect.stringMatching(text) as string

describe('check', () => {
  it('of what is right says so in a line each, asks for one page of each list, and exits with 0', async ({
    checking: { server, workspace, check },
  }) => {
    const { code, stdout, bad } = await check()

    expect([code, bad]).toEqual([0, []])
    expect(server.asked.map(({ page }) => page)).toEqual([1, 1])
    expect(stdout).toMatch(/^ok {4}acme orders +4 items on 2 pages$/m)
    const times =
      /^ok {4}schedule +"\*\/15 \* \* \* \*" of 2 organizations: next (\S+ \S+, ){2}\S+ \S+ \(UTC\)$/m
    expect(stdout).toMatch(times)
    expect(stdout).toMatch(/^ok {4}clock +agrees/m)
    expect(stdout).toMatch(/^ok {4}database .*mirror\.db can be written$/m)
    // No rows, no walks: it only looked.
    expect(workspace.rows('SELECT * FROM sync_runs')).toEqual([])
  })

  it('warns of a file that every user can read, if a token stands in it, not if a variable does', async ({
    checking: { workspace, check, configure },
  }) => {
    fs.chmodSync(workspace.file('admin-mirror.yaml'), 0o644)
    const warning = /^warn .*read by every user .* token of acme and 1 more; type: chmod o-rwx /
    expect((await check()).bad).toEqual([matching(warning)])
    fs.writeFileSync(workspace.file('token'), 'a-token-of-a-file', { mode: 0o600 })
    configure({ organizations: [{ id: ACME.id, name: 'acme', tokenFile: 'token' }] })
    expect((await check()).bad).toEqual([])
  })

  it.for<[number, number, RegExp]>([
    [401, 3, /refused \(401\).*resume --org globex/],
    [403, 3, /403/],
    [404, 3, /404/],
    [500, 1, /500/],
    [301, 1, /301/],
  ])(
    'tells what a %d means, after one request, and exits with %d',
    async ([status, expected, message], { checking }) => {
      checking.refuseGlobex({ status, body: {} })

      const { code, bad } = await checking.check()

      expect([code, bad]).toEqual([expected, [matching(/^fail {2}globex orders /)]])
      expect(bad[0]).toMatch(message)
      expect(checking.ofGlobex()).toHaveLength(1)
    },
  )

  it('holds a refused token, as any run does, and does not ask with it again', async ({ checking }) => {
    checking.refuseGlobex({ status: 401, body: {} })
    await checking.check()

    const { code, bad } = await checking.check()

    expect([code, bad]).toEqual([3, [matching(/^fail {2}globex orders +not asked: .*refused/)]])
    expect(checking.ofGlobex()).toHaveLength(1)
    expect((await checking.workspace.run(['status', '--check'])).code).toBe(3)
  })

  it.for<[string, () => Promise<string>, RegExp]>([
    ['a mistyped host', async () => 'http://admin.exampel.invalid', /admin\.exampel\.invalid/],
    [
      'a certificate that is refused',
      async () => (await serve(() => ({}), createSelfSigned())).url,
      /certificate is signed by nobody .*\(DEPTH_ZERO_SELF_SIGNED_CERT\)/,
    ],
    [
      'a port where nothing listens',
      async () => 'http://127.0.0.1:1',
      /\(ECONNREFUSED\) at http:\/\/127\.0\.0\.1:1/,
    ],
  ])('tells of %s once, however many lists there are', async ([, address, message], { checking }) => {
    checking.configure({ baseUrl: await address() })

    const { code, bad } = await checking.check()

    expect([code, bad]).toEqual([1, [matching(/^fail {2}acme orders and 1 more list /)]])
    expect(bad[0]).toMatch(message)
  })

  it('tells of a clock that is wrong', async ({ checking: { check, api } }) => {
    const headers = { date: new Date(Date.now() - 3_600_000).toUTCString() }
    api.instead = () => ({ headers, body: { data: [], links: { next: null }, meta: {} } })

    const { code, bad } = await check()

    expect([code, bad]).toEqual([0, [matching(/^warn {2}clock +is 60 minutes ahead of the server's/)]])
  })

  it('tells all problems of the configuration, and exits with 2', async ({
    checking: { check, configure },
  }) => {
    configure({ organizations: [{ ...ACME, token: variable('NOT_SET') }], schedule: 'soon' })

    const { code, stdout } = await check()

    expect(code).toBe(2)
    for (const problem of [/^fail {2}configuration .*schedule/m, /^fail {2}configuration .*NOT_SET/m])
      expect(stdout).toMatch(problem)
  })

  it('tells of a token file that is not there, and asks for the other lists', async ({
    checking: { workspace, server, check, configure },
  }) => {
    const tokenFile = workspace.file('missing')
    configure({ organizations: [{ id: ACME.id, name: 'acme', tokenFile }, GLOBEX] })

    const { code, bad } = await check()

    expect([code, server.asked.length]).toEqual([2, 1])
    expect(bad[0]).toMatch(/^fail {2}token acme +.*no such file/)
  })

  it('exits with 4 for a mirror that cannot be used, though a token is missing, too; nothing is sent', async ({
    checking: { workspace, server, check, configure },
  }) => {
    fs.writeFileSync(workspace.mirror, 'no database, but somebody needs it')
    configure({ organizations: [{ id: ACME.id, name: 'acme', tokenFile: 'none' }] })

    const { code, bad } = await check()

    expect([code, server.asked]).toEqual([4, []])
    expect(bad).toEqual([matching(/^fail {2}token acme /), matching(/^fail {2}database .*mirror\.db/)])
  })

  it('exits with 2 for another key, and for another address, as a sync does; nothing is sent', async ({
    checking: { workspace, server, check, configure },
  }) => {
    await workspace.run(['sync'])
    const asked = server.asked.length
    configure({ collections: { establishments: false, orders: { key: 'state' } } })
    const key = await check()
    configure({ baseUrl: `${server.url}/other` })
    const address = await check()

    expect([key.code, key.bad]).toEqual([2, [matching(/orders by the key id, .* says state/)]])
    expect([address.code, address.bad]).toEqual([2, [matching(/127\.0\.0\.1\/other/)]])
    expect(server.asked).toHaveLength(asked)
  })
})

plain('the published file cannot be one that is mounted by itself', () => {
  const mounts = [
    '36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw',
    '40 35 98:0 /a.db /data/the\\040copy.db rw - ext3 /dev/root rw',
  ].join('\n')

  expect(checkPublish('/data/the copy.db', mounts)).toEqual([
    expect.objectContaining({ exitCode: 2, message: expect.stringContaining('/data instead') }),
  ])
  expect(checkPublish('/tmp/another.db', mounts)).toEqual([])
})
