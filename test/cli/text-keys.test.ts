import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { patchedBy } from '../helpers/patch.ts'
import { pageOf, serve } from './list-server.ts'
import { createWorkspace, organization, type Workspace } from './workspace.ts'

// Real processes on a list whose keys were whole numbers, when the first text comes.

const NUMBERS = Array.from({ length: 400 }, (_, index) => ({ id: index + 1, state: 'open' }))
const TEXTS = [...NUMBERS, { id: 'x-1', state: 'open' }]

const SMALL_STEPS = {
  file: 'src/mirror/steps.ts',
  find: 'if (await step(rows)) return true',
  replace: 'if (await step(Math.min(rows, 4))) return true',
}

/** After 40 of these it stands still for so long, to be met there. */
function pausing(ms: number) {
  return patchedBy(SMALL_STEPS, {
    file: 'src/mirror/steps.ts',
    find: 'await sleep(',
    replace: `globalThis.rests = (globalThis.rests ?? 0) + 1; if (globalThis.rests === 40) await sleep(${ms}); await sleep(`,
  })
}

/** Two organizations whose 400 orders each are in the mirror; from now on each list has a text key, too. */
async function scene() {
  let list: unknown[] = NUMBERS
  const server = await serve((asked) => pageOf(list, asked, { perPage: 200 }))
  const organizations = [organization('acme', 1), organization('globex', 2)]
  const workspace = createWorkspace({ baseUrl: server.url, organizations })
  await workspace.run(['sync'])
  list = TEXTS
  return workspace
}

/** Waits until it stands still. */
async function paused(workspace: Workspace): Promise<void> {
  const isBegun = () => workspace.value(`SELECT count(*) FROM sqlite_schema WHERE name = '_new_orders'`) === 1
  while (!isBegun() || workspace.value('SELECT count(*) FROM _new_orders') !== 160) await sleep(20)
}

function expectWhole(workspace: Workspace): void {
  for (const table of ['orders', 'orders_raw']) {
    expect(workspace.rows(`SELECT typeof(id) AS type, count(*) AS rows FROM ${table} GROUP BY 1`)).toEqual([
      { type: 'text', rows: 802 },
    ])
  }
  expect(
    workspace.value(`SELECT count(*) FROM sqlite_schema WHERE name LIKE '%\\_new\\_%' ESCAPE '\\'`),
  ).toBe(0)
  expect(workspace.value('SELECT integrity_check FROM pragma_integrity_check')).toBe('ok')
  expect(workspace.rows('SELECT organization, rows FROM sync_status')).toEqual([
    { organization: 'acme', rows: 401 },
    { organization: 'globex', rows: 401 },
  ])
}

describe.concurrent('a key that becomes TEXT', () => {
  it('is no matter when the process is killed over it: the old tables stand, and the next one goes on', async () => {
    const workspace = await scene()
    const sync = workspace.start(['sync', '--org', 'acme'], { env: pausing(60_000) })
    await paused(workspace)

    sync.killAll('SIGKILL')
    await sync.ended

    expect(workspace.rows('SELECT typeof(id) AS type, count(*) AS rows FROM orders GROUP BY 1')).toEqual([
      { type: 'integer', rows: 800 },
    ])
    expect(workspace.value('SELECT integrity_check FROM pragma_integrity_check')).toBe('ok')
    const exported = await workspace.run(['export', 'orders', '--format', 'csv'])
    expect(exported.stdout.trimEnd().split('\n')).toHaveLength(801)
    expect((await workspace.run(['sync'])).code).toBe(0)
    expectWhole(workspace)
  })

  it('is stopped by a signal at once, and gone on with by the next command', async () => {
    const workspace = await scene()
    const sync = workspace.start(['sync', '--org', 'acme'], { env: pausing(5000) })
    await paused(workspace)

    sync.kill('SIGTERM')
    const { code } = await sync.ended

    expect(code).toBe(143)
    expect(workspace.value('SELECT count(*) FROM _new_orders')).toBe(164)
    expect(workspace.rows(`SELECT DISTINCT status FROM sync_runs WHERE id > 2`)).toEqual([
      { status: 'interrupted' },
    ])
    expect((await workspace.run(['sync'])).code).toBe(0)
    expectWhole(workspace)
  })

  it('can be made by two processes at the same time', async () => {
    const workspace = await scene()
    const both = ['acme', 'globex'].map((name) =>
      workspace.start(['sync', '--org', name], { env: patchedBy(SMALL_STEPS) }),
    )

    const ended = await Promise.all(both.map((sync) => sync.ended))

    expect(ended.map(({ code }) => code)).toEqual([0, 0])
    expectWhole(workspace)
  })
})
