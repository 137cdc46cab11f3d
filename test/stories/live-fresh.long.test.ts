import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { createData } from '../../src/sandbox/data.ts'
import { openingOf } from '../../src/sandbox/order-life.ts'
import { type SandboxOptions, startSandbox } from '../../src/sandbox/server.ts'
import { type Running, startProgram } from '../helpers/processes.ts'
import { createWorkspace, type Workspace } from '../helpers/workspace.ts'

// A sandbox whose orders live, in a process of its own; and `start`, which also walks it whole again and again: in the long
// form a walk is always open. How long that takes decides nothing: the test waits for what must come, and the bound on ages
// is a minute above `every`.

const MINUTES = Number(process.env.LIVE_MINUTES ?? '0')

/** The long form, and one of seconds for every run of the tests. */
const FORM =
  MINUTES > 0
    ? {
        orders: 25_000,
        requestsPerMinute: 100,
        rateLimit: {},
        speed: 1,
        every: 60,
        timeout: (MINUTES + 20) * 60_000,
      }
    : {
        orders: 2500,
        requestsPerMinute: 6000,
        rateLimit: { requestsPerMinute: 6000 },
        speed: 40,
        every: 1,
        timeout: 180_000,
      }
const BOUND_MS = (FORM.every + 60) * 1000
/** So many new orders must come with refreshes before the list is brought to rest. */
const REFRESHED = 2

type Order = SandboxOptions['order']

const LIST = { orders: FORM.orders, establishments: 0, organizations: 1, seed: 1 }
const DATA = createData({ ...LIST, organization: 0, live: true }).orders
const OPENING = openingOf({ originals: FORM.orders, live: true })

/** The same list, which stands still as it was so many milliseconds after it began to live. */
function startStill(order: Order, afterMs: number) {
  const looks = [0]
  const now = () => looks.pop() ?? afterMs
  // Where a limit was learned from the living one, this announces that nobody has to wait.
  const requestsPerMinute = afterMs > 0 ? 1e6 : 0
  return startSandbox({ ...LIST, port: 0, live: true, speed: FORM.speed, order, requestsPerMinute, now })
}

function startLiving(order: Order, { folder }: Workspace): Running {
  const { orders, establishments, organizations, seed } = LIST
  const list = `--orders ${orders} --establishments ${establishments} --organizations ${organizations} --seed ${seed}`
  const life = `--live --speed ${FORM.speed} --order ${order} --requests-per-minute ${FORM.requestsPerMinute}`
  return startProgram(['sandbox', ...list.split(' '), ...life.split(' ')], { cwd: folder })
}

/** Milliseconds of real time after the list began to live. */
function appearedAfter(index: number): number {
  return ((DATA.createdAt(index) - OPENING + 1) * 1000) / FORM.speed
}

/** New orders by a moment in real time, without those that were deleted by then. */
function appearedBy(afterMs: number): number[] {
  const tick = Math.floor((afterMs * FORM.speed) / 1000)
  const deleted = DATA.deletedAt(tick)
  const fresh = Array.from({ length: DATA.countAt(tick) - FORM.orders }, (_, at) => FORM.orders + at)
  return fresh.filter((index) => !deleted.has(index))
}

function settings(baseUrl: string, organization: { id: string; name: string; token: string }) {
  return {
    baseUrl,
    organizations: [organization],
    schedule: MINUTES > 0 ? '0 * * * * *' : '*/5 * * * * *',
    // So that `start` need not learn first how often it may refresh.
    rateLimit: FORM.rateLimit,
    refresh: { every: `${FORM.every}s`, share: 10 },
  }
}

/** Waits for a walk that began and ended while the list lived, and for what refreshes bring. */
async function untilSeen({ value }: Workspace, untilMs: number): Promise<void> {
  const isDone = () =>
    Date.now() >= untilMs &&
    Number(value(`SELECT count(*) FROM sync_walks WHERE id > 1 AND status = 'complete'`)) > 0 &&
    Number(value(`SELECT sum(rows_added) FROM sync_runs WHERE "trigger" = 'refresh'`)) >= REFRESHED
  while (!isDone()) await sleep(500)
}

/** Milliseconds between the appearance of each new order and its first sight, by its index. */
function agesOf({ rows }: Workspace, beganAt: number): Map<number, number> {
  const seen = rows<{ number: string; at: string }>(
    `SELECT number, _first_seen_at AS at FROM orders WHERE number > 'ORD-${String(FORM.orders).padStart(6, '0')}'`,
  )
  return new Map(
    seen.map(({ number, at }) => {
      const index = Number(number.slice('ORD-'.length)) - 1
      return [index, Date.parse(at) - beganAt - appearedAfter(index)]
    }),
  )
}

function say(order: Order, ages: Iterable<number>, { rows }: Workspace): void {
  const sorted = [...ages].toSorted((a, b) => a - b).map((age) => Math.round(age / 100) / 10)
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))]
  const runs = rows(`SELECT "trigger", count(*) AS runs, sum(requests) AS requests, sum(pages) AS pages,
    sum(rows_added) AS added, sum(rows_changed) AS changed FROM sync_runs GROUP BY "trigger"`)
  const walks = rows('SELECT id, status, pages, passes, coverage FROM sync_walks')
  const lines = [...runs, ...walks].map((line) => `  ${JSON.stringify(line)}`)
  process.stdout.write(
    `${order}: ages of ${sorted.length} new orders: median ${at(0.5)} s, p95 ${at(0.95)} s, max ${at(1)} s\n${lines.join('\n')}\n`,
  )
}

it.concurrent.each<Order>(['first', 'last'])(
  'shows new orders soon beside full walks, new ones %s',
  async (order) => {
    const workspace = createWorkspace()
    const before = await startStill(order, 0)
    const [organization = { id: '', name: '', token: '' }] = before.organizations
    workspace.configure(settings(before.url, organization))
    const first = await workspace.run(['sync'])
    await before.close()

    // Before the sandbox begins to live: no order appears earlier than the test takes it to.
    const beganAt = Date.now()
    const living = startLiving(order, workspace)
    const { url } = JSON.parse(await living.firstLine())
    const heardAt = Date.now()
    workspace.configure(settings(url, organization))
    const start = workspace.start(['start'])
    await untilSeen(workspace, beganAt + MINUTES * 60_000)
    const seenUntil = Date.now() - beganAt
    start.kill('SIGTERM')
    const stopped = await start.ended
    living.kill('SIGTERM')
    await living.ended
    const ages = agesOf(workspace, beganAt)
    const claimed = Date.parse(String(workspace.value('SELECT fresh_as_of FROM sync_status'))) - heardAt
    say(order, ages.values(), workspace)

    const after = await startStill(order, Date.now() - beganAt)
    workspace.configure(settings(after.url, organization))
    const codes: (number | null)[] = []
    for (const command of ['sync', 'sync', 'verify']) codes.push((await workspace.run([command])).code)
    await after.close()

    expect([first.code, stopped.code, ...codes]).toEqual([0, 0, 0, 0, 0])
    expect([...ages].filter(([, age]) => age < 0 || age > BOUND_MS)).toEqual([])
    // In the short form only the claim reaches beyond the beginning.
    const due = Math.max(claimed, seenUntil - BOUND_MS)
    const missing = appearedBy(seenUntil).filter((index) => appearedAfter(index) < due && !ages.has(index))
    expect(missing).toEqual([])
    expect(claimed).toBeGreaterThan(0)
    const walks = workspace.rows<{ coverage: string }>('SELECT coverage FROM sync_walks')
    expect(walks.filter(({ coverage }) => !['repaired', 'steady'].includes(coverage))).toEqual([])
  },
  FORM.timeout,
)
