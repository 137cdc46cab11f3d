import fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { faultsOf } from '../helpers/faults.ts'
import { type Fault, serve } from '../helpers/list-server.ts'
import type { StartOptions } from '../helpers/processes.ts'
import {
  createWorkspace,
  leaksOf,
  organization,
  type Settings,
  variable,
  type Workspace,
} from '../helpers/workspace.ts'
import * as connection from './connection.ts'
import { type FaultServer, type Rule, serveFaults } from './fault-server.ts'

// Where the token may not show and requests may not go, whatever happens and whoever asks for it. Each workspace looks for
// its tokens in all that the program wrote.

const ACME = organization('acme', 1)
const TOKEN = String(ACME.token)

async function scene(
  script: Rule[] = [],
  more: Partial<Settings> = {},
): Promise<{ server: FaultServer; workspace: Workspace }> {
  const server = await serveFaults(script, { organizations: [ACME] })
  const workspace = createWorkspace({ baseUrl: server.url, organizations: [ACME], ...more })
  return { server, workspace }
}

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

describe.concurrent('the token, whatever happens,', () => {
  it('shows in no output of a crash that nobody catches', async () => {
    const { workspace } = await scene()
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
    const { server, workspace } = await scene([{ fault: connection.hang }], {
      organizations: [{ ...ACME, token: variable('ACME_TOKEN') }],
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
    const { server, workspace } = await scene()
    const proxy = await stranger()

    const sync = await workspace.run(['sync'], { env: env(proxy.url) ?? {} })

    expect(sync.code).toBe(0)
    expect(server.pagesOf('acme')).toEqual([1, 2, 3, 4, 1])
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
    const fault: Fault = (response, text) => {
      // Where a proxy's word on the host got into the links.
      const links = {
        next: JSON.parse(text).links.next?.replace(/^http:\/\/[^/]+/, 'http://127.0.0.1:1') ?? null,
      }
      response.writeHead(200, headers).end(JSON.stringify({ ...JSON.parse(text), links }))
    }
    const { server, workspace } = await scene([{ fault }])

    const sync = await workspace.run(['sync'])

    expect(sync.code).toBe(0)
    expect(elsewhere.asked).toEqual([])
    expect(server.pagesOf('acme')).toEqual([1, 2, 3, 4, 1])
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
