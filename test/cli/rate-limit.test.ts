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

  it('keeps those from asking who share the budget', async () => {
    const server = await serve((): Reply => tooMany({ 'retry-after': '3600' }))
    const workspace = createWorkspace({
      baseUrl: server.url,
      organizations: [ACME, GLOBEX],
      rateLimit: { maxWait: '1m', scope: 'all' },
      concurrency: 1,
    })

    const sync = await workspace.run(['sync', '--log-level', 'trace'])

    expect(sync.code).toBe(1)
    expect(server.asked).toHaveLength(1)
    // A job that is told to wait before its first request leaves no line.
    expect(workspace.rows('SELECT error_code, requests FROM sync_runs')).toEqual([
      { error_code: 'RATE_LIMITED', requests: 1 },
    ])
  })
})

describe.concurrent('a ceiling of our own that is no whole number', () => {
  it.each([0.5, 1.5])(
    'of %s lets one request leave, says until when it waits, and hears a stop',
    async (rate) => {
      const server = await serve((asked) => pageOf(ITEMS, asked))
      const rateLimit = { requestsPerMinute: rate }
      const workspace = createWorkspace({ baseUrl: server.url, organizations: [ACME], rateLimit })

      const sync = workspace.start(['sync'])
      const { reason, until, time } = await sync.log(({ msg }) => msg === 'waiting')
      sync.kill('SIGTERM')

      expect((await sync.ended).code).toBe(143)
      expect(reason).toBe(`our own limit of ${rate} requests a minute`)
      const seconds = (Date.parse(String(until)) - Date.parse(String(time))) / 1000
      expect(seconds).toBeGreaterThan(60 / Math.min(rate, 1) - 30)
      expect(seconds).toBeLessThan(60 / Math.min(rate, 1) + 2)
      expect(server.asked).toHaveLength(1)
    },
  )
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
    [
      'the speed, for debugging only, where a fresh minute allows all of it',
      { 'x-ratelimit-limit': '60', 'x-ratelimit-remaining': '59' },
      {},
      expect.stringMatching(/^2 pages, about .* at the speed of the first$/),
    ],
  ])('goes by %s', async (_, headers, rateLimit, text) => {
    const server = await serve((asked: Asked) => ({ ...pageOf(ITEMS, asked), headers }))
    const workspace = createWorkspace({ baseUrl: server.url, organizations: [ACME], rateLimit })

    const sync = await workspace.run(['sync', '--log-level', 'debug'])

    expect(sync.code).toBe(0)
    expect(sync.logs).toContainEqual(expect.objectContaining({ collection: 'orders', msg: text }))
  })
})
