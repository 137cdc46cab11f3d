import fs from 'node:fs'
import { createServer } from 'node:net'
import { describe, expect } from 'vitest'
import type { Finding } from '../../../src/check/finding.ts'
import { createSelfSigned } from '../../api/helpers/server.ts'
import { items, type Reply, serve } from '../../helpers/list-server.ts'
import { ACME, GLOBEX, type Scene, sceneTests } from '../../helpers/scene.ts'
import { variable, type Workspace } from '../../helpers/workspace.ts'

const plain = sceneTests()

// What check finds, what it says to do, and its exit code.

const it = plain
  .override({ options: { settings: { organizations: [ACME, GLOBEX] } } })
  .extend('checking', async ({ scene }) => {
    const { workspace } = scene
    fs.chmodSync(workspace.file('admin-mirror.yaml'), 0o600)
    return { ...scene, check: (...options: string[]) => checked(workspace, ...options) }
  })

async function checked(workspace: Workspace, ...options: string[]) {
  const { code, stdout, stderr } = await workspace.run(['check', '--json', ...options])
  expect(stderr).toBe('')
  const report = JSON.parse(stdout) as { version: number; exit_code: number; checks: Finding[] }
  expect(report).toMatchObject({ version: 1, exit_code: code })
  return {
    code,
    failed: report.checks.filter(({ state }) => state === 'fail'),
    named: (name: string) => report.checks.filter((one) => one.name === name),
  }
}

const has = (text: string) => expect.stringContaining(text) as string
const matches = (text: RegExp) => expect.stringMatching(text) as string
const ofGlobex = (reply: Reply) => (asked: { organization: string }) =>
  asked.organization === GLOBEX.id ? reply : null

describe('check', () => {
  it('of what is right says so in a line each, asks for one page of each list, and exits with 0', async ({
    checking: { server, workspace },
  }) => {
    const { code, stdout, stderr } = await workspace.run(['check'])

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(server.asked.map(({ page }) => page)).toEqual([1, 1])
    expect(stdout).toMatch(/^ok {4}acme orders +4 items on 2 pages$/m)
    expect(stdout).toMatch(
      /^ok {4}schedule +"\*\/15 \* \* \* \*" of 2 organizations: next (\S+ \S+, ){2}\S+ \S+ \(UTC\)$/m,
    )
    expect(stdout).toMatch(/^ok {4}clock +agrees/m)
    expect(stdout).not.toMatch(/^(warn|fail)/m)
    expect(stdout).toMatch(/^ok {4}mirror .* is not there yet, and can be made/m)
    // No rows, no walks: it only looked.
    expect(workspace.rows('SELECT * FROM sync_runs')).toEqual([])
  })

  it('of a mirror says that it is whole, and adds no run to it', async ({ checking: { workspace } }) => {
    await workspace.run(['sync'])
    const runs = workspace.rows('SELECT * FROM sync_runs')

    const { code, stdout } = await workspace.run(['check'])

    expect(code).toBe(0)
    expect(stdout).toMatch(/^ok {4}mirror .* not damaged \(quick_check\)$/m)
    expect(workspace.rows('SELECT * FROM sync_runs')).toEqual(runs)
  })

  it('--offline sends nothing and writes nothing', async ({ checking: { server, workspace, check } }) => {
    const { code, named } = await check('--offline')

    expect([code, named('api'), server.asked]).toEqual([0, [], []])
    expect(fs.readdirSync(workspace.folder)).toEqual(['admin-mirror.yaml'])
  })

  it('warns of a file that every user can read, if a token stands in it, not if a variable does', async ({
    checking: { workspace, check, configure },
  }) => {
    const warned = async () =>
      (await check('--offline')).named('configuration').filter(({ state }) => state === 'warn')

    expect(await warned()).toEqual([])
    fs.chmodSync(workspace.file('admin-mirror.yaml'), 0o644)
    expect(await warned()).toMatchObject([
      {
        message: matches(/read by every user of this machine, .* token of acme and 1 more$/),
        cure: has('chmod o-rwx'),
      },
    ])
    fs.writeFileSync(workspace.file('token'), 'a-token-of-a-file', { mode: 0o600 })
    configure({ organizations: [{ id: ACME.id, name: 'acme', tokenFile: 'token' }] })
    expect(await warned()).toEqual([])
  })

  it('proposes another schedule where walks would not end in time', async ({ checking: { check, api } }) => {
    const meta = { current_page: 1, last_page: 4000, per_page: 25, total: 100_000 }
    api.instead = () => ({
      headers: { 'x-ratelimit-limit': '60', 'x-ratelimit-remaining': '50' },
      body: { data: items(25), links: { next: '?page=2' }, meta },
    })

    const { code, named } = await check()

    expect(code).toBe(0)
    expect(named('rate limit')).toMatchObject([{ message: has('announces 60 requests a minute') }])
    expect(named('schedule')[1]).toMatchObject({ state: 'warn', cure: 'set schedule: "0 */6 * * *"' })
    expect(named('refresh')).not.toEqual([])
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
      const { server, api, check } = checking
      api.instead = ofGlobex({ status, body: {} })

      const { code, failed } = await check()

      expect(code).toBe(expected)
      expect(failed).toMatchObject([{ name: 'globex orders', message: matches(message) }])
      expect(server.asked.filter((asked) => asked.organization === GLOBEX.id)).toHaveLength(1)
    },
  )

  it('holds a refused token, as any run does, and does not ask with it again', async ({ checking }) => {
    const { server, api, check, workspace } = checking
    api.instead = ofGlobex({ status: 401, body: {} })
    await check()

    const { code, failed } = await check()

    expect(code).toBe(3)
    expect(failed).toMatchObject([{ name: 'globex orders', message: matches(/^not asked: .*refused/) }])
    expect(server.asked.filter((asked) => asked.organization === GLOBEX.id)).toHaveLength(1)
    expect((await workspace.run(['status', '--check'])).code).toBe(3)
  })

  it.for<[string, (scene: Scene) => Promise<string>, object]>([
    [
      'a mistyped host',
      async () => 'http://admin.exampel.invalid',
      { message: has('admin.exampel.invalid') },
    ],
    [
      'a certificate that is refused',
      async () => (await serve(() => ({}), createSelfSigned())).url,
      { message: matches(/certificate .* is refused/), cure: has('NODE_EXTRA_CA_CERTS') },
    ],
    [
      'a port where nothing listens',
      async () => 'http://127.0.0.1:1',
      { message: 'nothing listens at port 1 of 127.0.0.1' },
    ],
  ])('tells of %s once, and at once', async ([, address, finding], { checking }) => {
    checking.configure({ baseUrl: await address(checking) })

    const { code, failed, named } = await checking.check()

    expect(code).toBe(1)
    expect(failed).toMatchObject([{ name: 'api', ...finding }])
    expect(named('lists')).toMatchObject([{ state: 'warn' }])
  })

  it('tells of a clock that is wrong', async ({ checking: { check, api } }) => {
    const headers = { date: new Date(Date.now() - 3_600_000).toUTCString() }
    api.instead = () => ({ headers, body: { data: [], links: { next: null }, meta: {} } })

    const { code, named } = await check()

    expect(code).toBe(0)
    expect(named('clock')).toMatchObject([{ state: 'warn', message: "is 60 minutes ahead of the server's" }])
  })

  it('tells all problems of the configuration, and exits with 2', async ({
    checking: { check, configure },
  }) => {
    configure({ organizations: [{ ...ACME, token: variable('NOT_SET') }], schedule: 'soon' })

    const { code, failed } = await check()

    const problems = failed.map(({ message }) => message).join('\n')
    expect([code, problems, problems]).toEqual([2, has('schedule'), has('NOT_SET')])
  })

  it('tells of a token file that is not there, and asks about a collection that is close to a known one', async ({
    checking: { workspace, check, configure },
  }) => {
    const { token: _, ...acme } = ACME
    configure({
      organizations: [{ ...acme, tokenFile: workspace.file('missing') }, GLOBEX],
      collections: { order: {}, establishments: false },
    })

    const { code, failed, named } = await check('--offline')

    expect(code).toBe(2)
    expect(failed).toMatchObject([{ name: 'token acme', message: has('no such file') }])
    expect(named('tokens')).toMatchObject([{ state: 'ok', message: '1 token can be read' }])
    expect(named('configuration')[1]).toMatchObject({ state: 'warn', cure: has('is orders meant?') })
  })

  it('exits with 4 for a mirror that cannot be used, though a token is missing, too', async ({
    checking: { workspace, check, configure },
  }) => {
    await workspace.run(['sync'])
    fs.linkSync(workspace.mirror, workspace.file('second.db'))
    configure({ organizations: [{ id: ACME.id, name: 'acme', tokenFile: 'none' }] })

    const { code, failed } = await check()

    expect(code).toBe(4)
    expect(failed[0]?.name).toBe('token acme')
    expect(failed[1]).toMatchObject({ name: 'mirror', message: has('2 names (hard links)') })
  })

  it("exits with 2 for a listener's port that is in use, and for a folder that cannot be one", async ({
    checking: { workspace, check, configure },
  }) => {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    fs.writeFileSync(workspace.file('file'), '')
    configure({
      http: { port: typeof address === 'object' ? address?.port : 0 },
      publish: workspace.file('file/published.db'),
    })

    const { code, named } = await check('--offline')
    server.close()

    expect(code).toBe(2)
    expect(named('http')).toMatchObject([{ state: 'fail', message: has('EADDRINUSE') }])
    expect(named('publish')).toMatchObject([{ state: 'fail', exit_code: 2 }])
  })

  it('exits with 2 for a published file of another mirror, which a sync leaves as it is', async ({
    checking: { workspace, check, configure },
  }) => {
    const publish = workspace.file('copy.db')
    configure({ publish, database: 'other.db' })
    await workspace.run(['sync'])
    const { ino } = fs.statSync(publish)

    configure({ publish })
    const sync = await workspace.run(['sync'])
    const { code, named } = await check('--offline')

    const message = matches(/copy\.db is the copy of another mirror, .* delete .*copy\.db$/)
    expect([sync.code, code, fs.statSync(publish).ino]).toEqual([0, 2, ino])
    expect(sync.logs).toContainEqual(expect.objectContaining({ event: 'publish_failed', reason: message }))
    expect(named('publish')).toContainEqual(expect.objectContaining({ state: 'fail', exit_code: 2, message }))
  })

  it('exits with 2 for another key, a name of tables that is taken, and another address, online, too', async ({
    checking: { workspace, server, check, configure },
  }) => {
    await workspace.run(['sync'])
    server.asked.length = 0
    const collections = { establishments: false, orders: { key: 'state' }, visits: {} }
    workspace.change('CREATE TABLE visits_raw (a)')
    configure({ collections })
    const keys = [await check(), await check('--offline')]
    configure({ baseUrl: `${server.url}/other` })
    const asked = server.asked.length
    const addresses = [await check(), await check('--offline')]

    for (const { code, failed } of keys) {
      expect(code).toBe(2)
      expect(failed).toMatchObject([
        {
          name: 'configuration',
          message: matches(/^the mirror keeps orders by the key id, .* says state: /),
        },
        { name: 'configuration', message: matches(/^the mirror cannot make the tables of visits, /) },
      ])
    }
    for (const { code, failed } of addresses) {
      expect(code).toBe(2)
      expect(failed).toMatchObject([
        { name: 'mirror', exit_code: 2, message: matches(/127\.0\.0\.1\/other/) },
      ])
    }
    expect(server.asked).toHaveLength(asked)
  })
})
