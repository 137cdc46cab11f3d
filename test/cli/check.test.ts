import fs from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { checkReadable } from '../../src/check/configured.ts'
import { CheckSchema, type Finding } from '../../src/check/finding.ts'
import { createSelfSigned } from '../api/helpers/server.ts'
import { mustRun } from '../helpers/system.ts'
import { tempFolder } from '../helpers/temp-folder.ts'
import { items, pageOf, type Reply, serve } from './list-server.ts'
import { createWorkspace, organization, variable, type Workspace } from './workspace.ts'

const ACME = organization('acme', 1)
const GLOBEX = organization('globex', 2)
/** As on another token than acme. */
const BOTH = [ACME, GLOBEX]

async function createScene(reply: (organization: string) => Reply | null = () => null, more: object = {}) {
  const server = await serve((asked) => reply(asked.organization) ?? pageOf(items(4), asked))
  const settings = { baseUrl: server.url, organizations: BOTH, ...more }
  const workspace = createWorkspace(settings)
  fs.chmodSync(workspace.file('admin-mirror.yaml'), 0o600)
  return { server, workspace, settings }
}

async function checked(workspace: Workspace, ...options: string[]) {
  const { code, stdout, stderr } = await workspace.run(['check', '--json', ...options])
  expect(stderr).toBe('')
  const report = JSON.parse(stdout) as { version: number; exit_code: number; checks: Finding[] }
  expect(CheckSchema.parse(report)).toEqual(report)
  expect(report).toMatchObject({ version: 1, exit_code: code })
  const failed = report.checks.filter(({ state }) => state === 'fail')
  return {
    code,
    checks: report.checks,
    failed,
    named: (name: string) => report.checks.filter((one) => one.name === name),
  }
}

describe.concurrent('check', () => {
  it('of what is right says so in a line each, asks for one page of each list, and exits with 0', async () => {
    const { server, workspace } = await createScene()

    const { code, stdout, stderr } = await workspace.run(['check'])

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(server.asked.map(({ page }) => page)).toEqual([1, 1])
    expect(stdout).toMatch(/^ok {4}acme orders +4 items on 2 pages$/m)
    expect(stdout).toMatch(
      /^ok {4}schedule +"\*\/15 \* \* \* \*" of 2 organizations: next (\S+ \S+, ){2}\S+ \S+ \(UTC\)$/m,
    )
    expect(stdout).toMatch(/^ok {4}clock +agrees/m)
    expect(stdout).not.toMatch(/^(warn|fail)/m)
    // No rows, no walks: it only looked.
    expect(workspace.rows('SELECT * FROM sync_runs')).toEqual([])
    expect((await workspace.run(['check', '--offline'])).stdout).toMatch(
      /^ok {4}mirror .* not damaged \(quick_check\)$/m,
    )
  })

  it('--offline sends nothing and writes nothing', async () => {
    const { server, workspace } = await createScene()

    const { code, checks } = await checked(workspace, '--offline')

    expect(code).toBe(0)
    expect(checks.map(({ name }) => name)).not.toContain('api')
    expect(server.asked).toEqual([])
    expect(fs.readdirSync(workspace.folder)).toEqual(['admin-mirror.yaml'])
  })

  it('warns of a file that every user can read, if a token stands in it, not if a variable does', async () => {
    const { server, workspace } = await createScene()
    const warned = async () =>
      (await checked(workspace, '--offline')).named('configuration').filter(({ state }) => state === 'warn')

    expect(await warned()).toEqual([])
    fs.chmodSync(workspace.file('admin-mirror.yaml'), 0o644)
    expect(await warned()).toMatchObject([
      {
        message: expect.stringMatching(/read by every user of this machine, .* token of acme and 1 more$/),
        cure: expect.stringContaining('chmod o-rwx'),
      },
    ])
    fs.writeFileSync(workspace.file('token'), 'a-token-of-a-file', { mode: 0o600 })
    const inFile = { id: ACME.id, name: 'acme', tokenFile: 'token' }
    workspace.configure({ baseUrl: server.url, organizations: [inFile] })
    expect(await warned()).toEqual([])
  })

  it.each([
    [10, /^full walks of 2 lists take no more requests than leave at once, at 10 a minute; /],
    // One request a list was sent by the check itself.
    [4, /^full walks of 2 lists take about (60 seconds|1 minute) at 4 requests a minute; /],
  ])(
    'counts what a budget of %d a minute allows now into how long full walks take',
    async (limit, expected) => {
      const { workspace } = await createScene(undefined, {
        schedule: '0 3 * * *',
        rateLimit: { requestsPerMinute: limit, scope: 'all' },
      })

      expect((await checked(workspace)).named('schedule')[1]?.message).toMatch(expected)
    },
  )

  it('prints the configured schedule where full walks leave it most of the time', async () => {
    const { workspace } = await createScene(undefined, {
      schedule: '* * * * *',
      rateLimit: { requestsPerMinute: 600 },
    })

    expect((await checked(workspace)).named('schedule').map(({ message }) => message)).toEqual([
      expect.stringContaining('"* * * * *" of 2 organizations'),
      expect.stringMatching(/; schedule: "\* \* \* \* \*" leaves most of them free$/),
    ])
  })

  it('after an upgrade, takes a mirror of the older version for what it is, and leaves it so', async () => {
    const { workspace } = await createScene()
    await workspace.run(['sync'])
    const older = new Database(workspace.mirror)
    older.pragma('user_version = 8')

    const { code, named } = await checked(workspace, '--offline')

    expect(code).toBe(0)
    expect(named('mirror')[0]).toMatchObject({
      state: 'ok',
      message: expect.stringContaining('version 8, which'),
    })
    expect(older.pragma('user_version', { simple: true })).toBe(8)
    older.close()
  })

  it.each([
    [401, 3, /refused \(401\).*resume --org globex/],
    [403, 3, /403/],
    [404, 3, /404/],
    [500, 1, /500/],
    [301, 1, /301/],
  ])('tells what a %d means, after one request, and exits with %d', async (status, expected, message) => {
    const { server, workspace } = await createScene((id) => (id === GLOBEX.id ? { status, body: {} } : null))

    const { code, failed } = await checked(workspace)

    expect(code).toBe(expected)
    expect(failed).toMatchObject([{ name: 'globex orders', message: expect.stringMatching(message) }])
    expect(server.asked.filter((asked) => asked.organization === GLOBEX.id)).toHaveLength(1)
  })

  it('holds a refused token, as any run does, and does not ask with it again', async () => {
    const { server, workspace } = await createScene((id) =>
      id === GLOBEX.id ? { status: 401, body: {} } : null,
    )
    await checked(workspace)

    const { code, failed } = await checked(workspace)

    expect(code).toBe(3)
    expect(failed).toMatchObject([
      { name: 'globex orders', message: expect.stringMatching(/^not asked: .*refused/) },
    ])
    expect(server.asked.filter((asked) => asked.organization === GLOBEX.id)).toHaveLength(1)
    expect((await workspace.run(['status', '--check'])).code).toBe(3)
  })

  it('tells of a mistyped host once, and at once', async () => {
    const { workspace, settings } = await createScene()
    workspace.configure({ ...settings, baseUrl: 'http://admin.exampel.invalid' })

    const { code, failed, named } = await checked(workspace)

    expect(code).toBe(1)
    expect(failed).toMatchObject([{ name: 'api', message: expect.stringContaining('admin.exampel.invalid') }])
    expect(named('lists')).toMatchObject([{ state: 'warn' }])
  })

  it('tells of a certificate that is refused, once', async () => {
    const server = await serve((asked) => pageOf(items(4), asked), createSelfSigned())
    const workspace = createWorkspace({ baseUrl: server.url, organizations: BOTH })

    const { code, failed } = await checked(workspace)

    expect(code).toBe(1)
    expect(failed).toMatchObject([
      {
        name: 'api',
        message: expect.stringMatching(/certificate .* is refused/),
        cure: expect.stringContaining('NODE_EXTRA_CA_CERTS'),
      },
    ])
    expect(server.asked).toEqual([])
  })

  it('ends soon where the API never answers', async () => {
    const server = await serve(() => new Promise<Reply>(() => {}))
    const workspace = createWorkspace({ baseUrl: server.url, organizations: [ACME] })
    const config = JSON.parse(fs.readFileSync(workspace.file('admin-mirror.yaml'), 'utf8')) as { api: object }
    config.api = { ...config.api, timeout: '2s' }
    fs.writeFileSync(workspace.file('admin-mirror.yaml'), JSON.stringify(config))

    const { code, failed } = await checked(workspace)

    expect(code).toBe(1)
    expect(failed).toMatchObject([{ name: 'acme orders', message: expect.stringContaining('api.timeout') }])
    expect(server.asked).toHaveLength(1)
  })

  it('tells of a port where nothing listens', async () => {
    const { workspace, settings } = await createScene()
    workspace.configure({ ...settings, baseUrl: 'http://127.0.0.1:1' })

    const { code, failed } = await checked(workspace)

    expect(code).toBe(1)
    expect(failed).toMatchObject([{ name: 'api', message: 'nothing listens at port 1 of 127.0.0.1' }])
  })

  it('tells all problems of the configuration, and exits with 2', async () => {
    const { workspace, settings } = await createScene()
    const broken = { ...ACME, token: variable('NOT_SET') }
    workspace.configure({ ...settings, organizations: [broken], schedule: 'soon' })

    const { code, failed } = await checked(workspace)

    expect(code).toBe(2)
    expect(failed.map(({ message }) => message).join('\n')).toMatch(
      /schedule[\s\S]*NOT_SET|NOT_SET[\s\S]*schedule/,
    )
  })

  it('tells of a token file that is not there, and asks about a collection that is close to a known one', async () => {
    const { token: _, ...acme } = ACME
    const { workspace, settings } = await createScene()
    workspace.configure({
      ...settings,
      organizations: [{ ...acme, tokenFile: workspace.file('missing') }, GLOBEX],
      collections: { order: {}, establishments: false },
    })

    const { code, failed, named } = await checked(workspace, '--offline')

    expect(code).toBe(2)
    expect(failed).toMatchObject([{ name: 'token acme', message: expect.stringContaining('no such file') }])
    expect(named('tokens')).toMatchObject([{ state: 'ok', message: '1 token can be read' }])
    expect(named('configuration')[1]).toMatchObject({
      state: 'warn',
      cure: expect.stringContaining('is orders meant?'),
    })
  })

  it('tells of a clock that is wrong', async () => {
    const { workspace } = await createScene(() => ({
      headers: { date: new Date(Date.now() - 3_600_000).toUTCString() },
      body: { data: [], links: { next: null }, meta: { current_page: 1, last_page: 1, total: 0 } },
    }))

    const { code, named } = await checked(workspace)

    expect(code).toBe(0)
    expect(named('clock')).toMatchObject([{ state: 'warn', message: "is 60 minutes ahead of the server's" }])
  })

  it('proposes another schedule where walks would not end in time', async () => {
    const page: Reply = {
      headers: { 'x-ratelimit-limit': '60', 'x-ratelimit-remaining': '50' },
      body: {
        data: items(25),
        links: { next: '?page=2' },
        meta: { current_page: 1, last_page: 4000, per_page: 25, total: 100_000 },
      },
    }
    const { workspace } = await createScene(() => page)

    const { code, named } = await checked(workspace)

    expect(code).toBe(0)
    expect(named('rate limit')).toMatchObject([
      { message: expect.stringContaining('announces 60 requests a minute') },
    ])
    expect(named('schedule')[1]).toMatchObject({ state: 'warn', cure: 'set schedule: "0 */6 * * *"' })
    expect(named('refresh')).not.toEqual([])
  })

  it('warns of what reading has shown, as status does', async () => {
    const { workspace } = await createScene(undefined, {
      collections: { orders: { newest: 'first' }, establishments: false },
    })
    await workspace.run(['sync'])
    // As after refreshes, and a full walk that found new rows at the other end.
    workspace.change(
      `UPDATE sync_jobs SET refresh = json_set(refresh, '$.interval', 300000), newest = NULL WHERE collection = 'orders'`,
    )

    const { code, named } = await checked(workspace, '--offline')

    expect(code).toBe(0)
    expect(named('advice')).toMatchObject([
      { state: 'warn', message: expect.stringContaining('newest: auto finds out by itself') },
    ])
  })

  it('exits with 4 for a mirror that cannot be used, though a token is missing, too', async () => {
    const { workspace, settings } = await createScene()
    workspace.configure({ ...settings, organizations: [{ id: ACME.id, name: 'acme', tokenFile: 'none' }] })
    fs.writeFileSync(workspace.mirror, 'no database '.repeat(100))

    const { code, failed } = await checked(workspace)

    expect(code).toBe(4)
    expect(failed.map(({ name }) => name)).toEqual(expect.arrayContaining(['mirror', 'token acme']))
  })

  it('exits with 4 for a mirror of two names', async () => {
    const { workspace } = await createScene()
    await workspace.run(['sync'])
    fs.linkSync(workspace.mirror, workspace.file('second.db'))

    const { code, failed } = await checked(workspace, '--offline')

    expect(code).toBe(4)
    expect(failed[0]?.message).toContain('2 names (hard links)')
  })

  it("exits with 2 for a listener's port that is in use, and for a folder that cannot be one", async () => {
    const { workspace, settings } = await createScene()
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    const port = typeof address === 'object' ? address?.port : 0
    fs.writeFileSync(workspace.file('file'), '')
    workspace.configure({ ...settings, http: { port }, publish: workspace.file('file/published.db') })

    const { code, named } = await checked(workspace, '--offline')
    server.close()

    expect(code).toBe(2)
    expect(named('http')).toMatchObject([{ state: 'fail', message: expect.stringContaining('EADDRINUSE') }])
    expect(named('publish')).toMatchObject([{ state: 'fail', exit_code: 2 }])
  })

  it('exits with 2 where the mirror keeps a collection by another key, and where a name of its tables is taken', async () => {
    const { workspace, settings } = await createScene()
    await workspace.run(['sync'])
    workspace.change('CREATE TABLE visits_raw (a)')
    workspace.configure({
      ...settings,
      collections: { establishments: false, orders: { key: 'state' }, visits: {} },
    })

    const reports = [await checked(workspace), await checked(workspace, '--offline')]

    for (const { code, failed } of reports) {
      expect(code).toBe(2)
      expect(failed).toMatchObject([
        {
          name: 'configuration',
          message: expect.stringMatching(/^the mirror keeps orders by the key id, .* says state: /),
        },
        {
          name: 'configuration',
          message: expect.stringMatching(/^the mirror cannot make the tables of visits, /),
        },
      ])
    }
  })

  it.each<[mode: number, tokens: string[], warns: boolean]>([
    [0o644, ['acme'], true],
    [0o604, ['acme', 'globex'], true],
    [0o640, ['acme'], false],
    [0o600, ['acme'], false],
    [0o644, [], false],
  ])('of a configuration with mode %o and tokens of %j warns: %s', (mode, literalTokens, warns) => {
    const file = path.join(tempFolder(), "it's here.yaml")
    fs.writeFileSync(file, '', { mode })

    const findings = checkReadable({ file, literalTokens })

    expect(findings).toHaveLength(Number(warns))
    if (!warns) return
    const { cure = '' } = findings[0] ?? {}
    const [, command = ''] = /^type: (.*?); or /.exec(String(cure)) ?? []
    mustRun('sh', '-c', command)
    expect(fs.statSync(file).mode & 0o007).toBe(0)
  })

  it('exits with 2 where the mirror holds the lists of another address', async () => {
    const { workspace, settings } = await createScene()
    await workspace.run(['sync'])
    const elsewhere = await serve((asked) => pageOf(items(4), asked))
    workspace.configure({ ...settings, baseUrl: `${elsewhere.url}/other` })

    const reports = [await checked(workspace), await checked(workspace, '--offline')]

    expect(reports.map(({ code }) => code)).toEqual([2, 2])
    for (const { failed } of reports)
      expect(failed).toMatchObject([
        { name: 'mirror', exit_code: 2, message: expect.stringMatching(/127\.0\.0\.1\/other/) },
      ])
    expect(elsewhere.asked).toEqual([])
  })
})
