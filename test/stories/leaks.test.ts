import { expect, it } from 'vitest'
import { serve } from '../helpers/list-server.ts'
import { faultsOf } from '../helpers/processes.ts'
import { ACME, createScene } from '../helpers/scene.ts'
import { leaksOf } from '../helpers/workspace.ts'

// Where the token may not show and requests may not go, whatever the process and its environment do. Each workspace looks for its tokens in all
// that the program wrote; answers that repeat them: test/api/client-tokens.test.ts.

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
