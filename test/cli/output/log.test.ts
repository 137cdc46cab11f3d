import { describe, expect, it } from 'vitest'
import { items, pageOf } from '../../helpers/list-server.ts'
import { createScene } from '../../helpers/scene.ts'

async function createLogged() {
  let failures = 1
  const filters = { email: 'mr@secret.example' }
  const { workspace } = await createScene({
    settings: { collections: { orders: { filters }, establishments: false } },
    instead: (asked) => {
      if (asked.page === 2 && failures-- > 0) return { status: 500, body: {} }
      const headers = { 'x-ratelimit-limit': '600', 'x-ratelimit-remaining': '500' }
      return { ...pageOf(items(8), asked), headers }
    },
  })
  return workspace
}

describe('the log', () => {
  it('names the event of every line, and its run and walk where it ends', async () => {
    const workspace = await createLogged()

    const { code, logs } = await workspace.run(['sync', '--log-level', 'trace'])

    expect(code).toBe(0)
    expect(logs.filter(({ event }) => typeof event !== 'string')).toEqual([])
    const [run] = workspace.rows('SELECT id, walk_id FROM sync_runs')
    expect(logs.find(({ event }) => event === 'run_finished')).toMatchObject({
      event: 'run_finished',
      run_id: run?.id,
      walk_id: run?.walk_id,
      duration_ms: expect.any(Number),
    })
  })

  it('shows each request at the level trace, without tokens and values of filters', async () => {
    const workspace = await createLogged()

    const { logs, stderr } = await workspace.run(['sync', '--log-level', 'trace'])
    const requests = logs.filter(({ event }) => event === 'request_answered')

    expect(requests.map(({ page, status }) => [page, status]).slice(0, 3)).toEqual([
      [1, 200],
      [2, 500],
      [2, 200],
    ])
    expect(requests[0]).toMatchObject({
      level: 'trace',
      organization: 'acme',
      collection: 'orders',
      path: '/api/v1/admin/orders',
      duration_ms: expect.any(Number),
      rate_limit: 600,
      rate_limit_remaining: 500,
    })
    expect(stderr).not.toMatch(/mr@secret|mr%40secret|Bearer|authorization/i)
    expect((await (await createLogged()).run(['sync', '--log-level', 'debug'])).stderr).not.toContain(
      'request_answered',
    )
  })

  it('tells of a failure once', async () => {
    const { workspace } = await createScene({ instead: () => ({ status: 404, body: {} }) })

    const { logs } = await workspace.run(['sync', '--log-level', 'trace'])

    expect(logs.filter((line) => JSON.stringify(line).includes('not found (404)'))).toMatchObject([
      {
        level: 'error',
        event: 'run_finished',
        error_code: 'ORGANIZATION_NOT_FOUND',
        error_message: expect.stringMatching(/not found \(404\)/),
        msg: 'run failed',
      },
    ])
  })
})
