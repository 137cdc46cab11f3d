import { describe, expect, it } from 'vitest'
import { type Asked, items, type ListServer, pageOf, type Reply, serve } from './list-server.ts'
import { createWorkspace, organization } from './workspace.ts'

const ITEMS = items(4)
const ACME = organization('acme', 1)
const GLOBEX = organization('globex', 2)

function tooMany(headers: Record<string, string>): Reply {
  return { status: 429, headers, body: { message: 'Too Many Attempts.' } }
}

/** Answers the first request of acme with 429 and all others with lists. */
async function throttledOnce(headers: Record<string, string>): Promise<ListServer> {
  const server: ListServer = await serve((asked) => {
    const count = server.asked.filter((one) => one.token === ACME.token).length
    return asked.token === ACME.token && count === 1 ? tooMany(headers) : pageOf(ITEMS, asked)
  })
  return server
}

describe.concurrent('a 429', () => {
  it('is waited out, and counts as no retry', async () => {
    const server = await throttledOnce({ 'retry-after': '0' })
    const workspace = createWorkspace({ baseUrl: server.url, organizations: [ACME] })

    const sync = await workspace.run(['sync', '--log-level', 'trace'])

    expect(sync.code).toBe(0)
    expect(server.asked.map(({ page }) => page)).toEqual([1, 1, 2, 1])
    const [run] = workspace.rows('SELECT * FROM sync_runs')
    expect(run).toMatchObject({ status: 'succeeded', requests: 4, retries: 0, rate_limit_hits: 1 })
    expect(run?.rate_limit_wait_ms).toBeGreaterThan(0)
    expect(sync.logs).toContainEqual(
      expect.objectContaining({ organization: 'acme', msg: 'waiting', until: expect.any(String) }),
    )
  })

  it('that asks for more than maxWait stops the job; nothing is asked before the time, until resume', async () => {
    const server = await throttledOnce({ 'retry-after': '3600' })
    const workspace = createWorkspace({
      baseUrl: server.url,
      organizations: [ACME, GLOBEX],
      rateLimit: { maxWait: '1m' },
    })
    const acmes = () => server.asked.filter(({ token }) => token === ACME.token).length

    const sync = await workspace.run(['sync', '--log-level', 'trace'])

    expect(sync.code).toBe(1)
    expect(acmes()).toBe(1)
    expect(
      workspace.rows(
        'SELECT name, status, error_code FROM sync_runs JOIN organizations ON organizations.id = organization_id ORDER BY name',
      ),
    ).toEqual([
      { name: 'acme', status: 'failed', error_code: 'RATE_LIMITED' },
      { name: 'globex', status: 'succeeded', error_code: null },
    ])
    expect(workspace.rows("SELECT next_page FROM sync_walks WHERE status = 'open'")).toEqual([
      { next_page: 1 },
    ])

    const again = await workspace.run(['sync', '--org', 'acme', '--log-level', 'trace'])

    expect(again.code).toBe(1)
    expect(again.logs).toContainEqual(
      expect.objectContaining({ organization: 'acme', error_code: 'RATE_LIMITED', event: 'run_not_begun' }),
    )
    expect(acmes()).toBe(1)
    expect(workspace.value('SELECT count(*) FROM sync_runs')).toBe(2)

    const status = await workspace.run(['status', '--json'])

    const { waiting_until: until, now } = JSON.parse(status.stdout) as { waiting_until: string; now: string }
    const minutes = (Date.parse(until) - Date.parse(now)) / 60_000
    expect(minutes).toBeGreaterThan(30)
    expect(minutes).toBeLessThan(61)

    const resume = await workspace.run(['resume', '--org', 'acme'])
    const after = await workspace.run(['sync', '--org', 'acme', '--log-level', 'trace'])

    expect(resume).toMatchObject({ code: 0, stdout: '' })
    expect(after.code).toBe(0)
    expect(acmes()).toBe(4)
  })
})

describe.concurrent('the estimate after the first page', () => {
  const announced = { 'x-ratelimit-limit': '6', 'x-ratelimit-remaining': '1' }

  it.each([
    ["the server's limit", announced, {}, '2 pages, about 60 seconds at 6 a minute'],
    [
      'our own, where it is less',
      announced,
      { requestsPerMinute: 3 },
      '2 pages, about 60 seconds at 3 a minute',
    ],
  ])('goes by %s', async (_, headers, rateLimit, text) => {
    const server = await serve((asked: Asked) => ({ ...pageOf(ITEMS, asked), headers }))
    const workspace = createWorkspace({ baseUrl: server.url, organizations: [ACME], rateLimit })

    const sync = await workspace.run(['sync', '--log-level', 'debug'])

    expect(sync.code).toBe(0)
    expect(sync.logs).toContainEqual(expect.objectContaining({ collection: 'orders', msg: text }))
  })
})
