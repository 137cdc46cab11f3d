import { expect, it } from 'vitest'
import { startSandbox } from '../../src/sandbox/server.ts'
import { createWorkspace } from '../helpers/workspace.ts'

// The live sandbox lives by the clock. Here its clock goes on with each look at it, so that as much happens to the list
// between two requests on any machine, until it stands still.

const RUNS = Number(process.env.LIVE_RUNS ?? '1')

/** Four syncs of a process each, on a machine that others use too. */
const TIMEOUT_MS = 300_000
const BETWEEN_REQUESTS_MS = 1500

const workspace = createWorkspace()

function createSteppingClock() {
  let time = Date.parse('2026-11-20T08:00:00Z')
  let step = BETWEEN_REQUESTS_MS
  return {
    now() {
      time += step
      return time
    },
    stop() {
      step = 0
    },
  }
}

async function readList(url: string, id: string, token: string): Promise<Map<number, string>> {
  const headers = {
    accept: 'application/json',
    authorization: `Bearer ${token}`,
    'x-service-organization': id,
  }
  const items = new Map<number, string>()
  for (let next: string | null = `${url}/api/v1/admin/orders`; next !== null; ) {
    const answer = await fetch(next, { headers })
    const { data, links } = (await answer.json()) as {
      data: { id: number }[]
      links: { next: string | null }
    }
    for (const item of data) items.set(item.id, JSON.stringify(item))
    next = links.next
  }
  return items
}

function mirrored(name: string): Map<number, string> {
  const rows = workspace.rows<{ id: number; _json: string }>(
    `SELECT r.id, r._json FROM orders_raw AS r JOIN organizations AS o ON o.id = r._organization_id WHERE o.name = '${name}'`,
  )
  return new Map(rows.map(({ id, _json }) => [id, JSON.stringify(JSON.parse(_json))]))
}

function sorted(items: Map<number, string>): [number, string][] {
  return [...items].toSorted(([a], [b]) => a - b)
}

it.each(Array.from({ length: RUNS }, (_, run) => run + 1))(
  'makes mirror and list equal with two walks after a list that lived has come to rest (%i)',
  async (seed) => {
    const clock = createSteppingClock()
    const rest = { port: 0, establishments: 5, organizations: 1, requestsPerMinute: 0, seed }
    const life = { live: true, speed: 5, order: 'last' } as const
    const sandbox = await startSandbox({ ...rest, ...life, orders: 1200, now: clock.now })
    const [{ id, name, token } = { id: '', name: '', token: '' }] = sandbox.organizations
    const named = `${name}-${seed}`
    workspace.configure({ baseUrl: sandbox.url, organizations: [{ id, name: named, token }] })

    const codes: (number | null)[] = []
    for (let walk = 1; walk <= 4; walk++) {
      if (walk === 3) clock.stop()
      const { code } = await workspace.run(['sync', '--org', named])
      codes.push(code)
    }
    const listed = await readList(sandbox.url, id, token)
    await sandbox.close()

    expect(codes).toEqual([0, 0, 0, 0])
    expect(sorted(mirrored(named))).toEqual(sorted(listed))
    const walks = workspace.rows<{ coverage: string; removed: number }>(
      `SELECT w.coverage, sum(r.rows_removed) AS removed FROM sync_walks AS w JOIN sync_runs AS r ON r.walk_id = w.id
       WHERE w.organization_id = '${id}' GROUP BY w.id ORDER BY w.id`,
    )
    expect(walks.map(({ coverage }) => coverage)).toEqual(['repaired', 'repaired', 'steady', 'steady'])
    expect(walks.reduce((sum, { removed }) => sum + removed, 0)).toBeGreaterThan(0)
  },
  TIMEOUT_MS,
)
