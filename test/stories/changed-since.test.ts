import { expect, it } from 'vitest'
import { startSandbox } from '../../src/sandbox/server.ts'
import { atEndOfFile } from '../helpers/at-end-of-file.ts'
import { createWorkspace } from '../helpers/workspace.ts'

// An API that can be asked for what changed, over HTTP: what a refresh then brings, what it costs, and what is said where it ignores it.

const HOUR = 3_600_000
async function createScene(parameter: string, orders: number) {
  const opened = Date.now()
  let passed = 0
  const sandbox = await startSandbox({
    port: 0,
    orders,
    establishments: 0,
    organizations: 1,
    requestsPerMinute: 0,
    seed: 1,
    live: true,
    speed: 1,
    order: 'last',
    now: () => opened + passed,
  })
  atEndOfFile(sandbox.close)
  const workspace = createWorkspace({
    baseUrl: sandbox.url,
    organizations: sandbox.organizations.map((one) => ({ ...one })),
    collections: {
      establishments: false,
      orders: { newest: 'last', changedSince: { parameter, field: 'updated_at' } },
    },
  })

  /** The list as it is now. */
  async function listed(): Promise<Map<string, string>> {
    const [first] = sandbox.organizations
    const headers = { authorization: `Bearer ${first?.token}`, 'x-service-organization': String(first?.id) }
    const states = new Map<string, string>()
    let next: string | null = `${sandbox.url}/api/v1/admin/orders`
    while (next !== null) {
      const response = await fetch(next, { headers })
      const body = (await response.json()) as {
        data: { id: number; state: string; updated_at: string }[]
        links: { next: string | null }
      }
      for (const { id, state, updated_at: at } of body.data) states.set(String(id), `${state} ${at}`)
      next = body.links.next
    }
    return states
  }

  /** Listed orders that are missing or otherwise in the mirror. */
  async function wrong(): Promise<number> {
    const rows = workspace.rows<{ id: number; state: string; updated_at: string }>(
      'SELECT id, state, updated_at FROM orders',
    )
    const known = new Map(rows.map(({ id, state, updated_at: at }) => [String(id), `${state} ${at}`]))
    return [...(await listed())].filter(([id, text]) => known.get(id) !== text).length
  }

  const refreshed = async () => {
    const { code, logs } = await workspace.run(['sync', '--refresh'])
    expect(code).toBe(0)
    const { requests } =
      workspace.rows<{ requests: number }>('SELECT requests FROM sync_runs ORDER BY id DESC LIMIT 1')[0] ?? {}
    return { requests: Number(requests), told: logs.filter(({ event }) => event === 'changed_since') }
  }

  await workspace.run(['sync'])
  return {
    workspace,
    wrong,
    refreshed,
    live: (ms: number) => {
      passed += ms
    },
  }
}

it('brings every change with a refresh, for a few requests', async () => {
  const { workspace, wrong, refreshed, live } = await createScene('updated_after', 1500)
  const findings = (await workspace.run(['check'])).stdout
  await refreshed()
  live(HOUR)
  const before = await wrong()

  const { requests, told } = await refreshed()

  expect(before).toBeGreaterThan(200)
  expect({ wrong: await wrong(), told }).toEqual({ wrong: 0, told: [] })
  // 180 new orders and as many changes again, 25 a page; a walk takes 68.
  expect(requests).toBeLessThan(40)
  expect(findings).toMatch(
    /^ok {4}\S+ orders changedSince +[\d,]+ rows changed after \S+, says the API: it heeds updated_after$/m,
  )
  expect((await workspace.run(['status'])).stdout).not.toContain('changedSince')
})

it('says where the API ignores the parameter, and asks no more that day', async () => {
  const { workspace, refreshed } = await createScene('modified_after', 300)
  const findings = (await workspace.run(['check'])).stdout

  const first = await refreshed()
  const second = await refreshed()

  expect(findings).toMatch(/^warn {2}\S+ orders changedSince .*ignores the parameter/m)
  expect(first.told).toMatchObject([{ level: 'warn', msg: expect.stringContaining('changedSince is off') }])
  expect(second.told).toEqual([])
  expect(second.requests).toBe(first.requests - 1)
  expect((await workspace.run(['status'])).stdout).toMatch(
    /^advice: changedSince of \S+ orders is off: .*modified_after/m,
  )
})
