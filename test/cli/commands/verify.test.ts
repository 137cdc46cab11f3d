import { expect } from 'vitest'
import { differenceLines } from '../../../src/cli/commands/verify.ts'
import { jobOf } from '../../helpers/jobs.ts'
import { items } from '../../helpers/list-server.ts'
import { stop } from '../../helpers/processes.ts'
import { ACME, GLOBEX, sceneTests } from '../../helpers/scene.ts'
import type { Workspace } from '../../helpers/workspace.ts'

const it = sceneTests()

// verify at the command. How lists are compared: test/sync/verify.test.ts.

it.override({ options: { list: items(6), settings: { organizations: [ACME, GLOBEX] } } })

// Each taking of a job has another epoch.
const stateOf = ({ rows }: Workspace) =>
  rows('SELECT * FROM sync_jobs AS j JOIN orders_raw AS r ON r._organization_id = j.organization_id').map(
    ({ epoch: _epoch, ...row }) => row,
  )

it('verify exits with 0 where all is the same, with 5 and each difference where something differs, and with 3 where a list is refused', async ({
  synced: { workspace, api },
}) => {
  const before = stateOf(workspace)
  const run = () => workspace.run(['verify'])

  const same = await run()
  const changed = { id: 2, state: 'a secret value', 'first name': 1 }
  api.list = [changed, ...items(5).slice(2), { id: 7 }, { id: 'a b\u001b[2J' }]
  const all = { body: { data: items(6), links: { next: null } } }
  api.instead = ({ organization }) => (organization === GLOBEX.id ? all : null)
  const apart = await run()
  api.instead = ({ organization }) => (organization === GLOBEX.id ? { status: 403, body: {} } : null)
  const refused = await run()

  expect([same.code, apart.code, refused.code]).toEqual([0, 5, 3])
  expect(same.stdout.split('\n')).toEqual([
    'acme orders: no difference (6 items, steady)',
    'globex orders: no difference (6 items, steady)',
    '',
  ])
  expect(apart.stdout.split('\n')).toEqual([
    'missing acme orders 7',
    "missing acme orders 'a b\\u{1b}[2J'",
    'extra acme orders 1',
    'extra acme orders 6',
    "different acme orders 2 state 'first name'",
    'acme orders: 2 missing, 2 extra, 1 different (6 items, steady)',
    'globex orders: no difference (6 items, steady)',
    '',
  ])
  expect(apart.stdout + apart.stderr).not.toMatch(/secret value/)
  expect(refused.stdout).toMatch(/^globex orders: not verified: FORBIDDEN: /m)
  expect(stateOf(workspace)).toEqual(before)
  expect(workspace.value('SELECT count(*) FROM sync_runs')).toBe(2)
})

it('verify exits with 1 where the list cannot tell whether the mirror has too much', async ({
  synced: { workspace, api },
}) => {
  const [first, , third, fourth] = items(6)
  api.list = [first, first, third, fourth]

  const { code, stdout } = await workspace.run(['verify', '--org', 'acme'])

  expect([code, stdout]).toEqual([1, expect.stringContaining('this reading cannot say whether')])
})

it('verify stops at a signal, and leaves nothing behind', async ({ synced: { workspace, api, server } }) => {
  api.instead = ({ page }) => (page === 2 ? new Promise(() => {}) : null)
  const verify = workspace.startHere(['verify', '--org', 'acme'])
  await server.arrival(({ page }) => page === 2)
  expect((await stop(verify, 'SIGINT')).code).toBe(130)
  expect(workspace.rows('SELECT DISTINCT owner, rows FROM sync_jobs')).toEqual([{ owner: null, rows: 6 }])
})

it('verify says of how many items so many differ, and where the list moved', () => {
  const [job, coverage] = [jobOf(), 'drifted' as const]
  const counts = { missing: 1201, extra: 0, different: 0 }
  const missing = { kind: 'missing' as const, key: '7', page: 3, paths: [], reject: null }
  const found = [missing, { ...missing, key: null, reject: 'key "id" is null' }]
  const differences = { items: 4000, counts, found, moved: 0, coverage, isExtraKnown: false }

  expect(differenceLines({ job, differences, error: null })).toEqual([
    'missing acme orders 7',
    'missing acme orders (on page 3, without a usable key: key "id" is null)',
    'acme orders: 1,201 missing (4,000 items, drifted); the list moved meanwhile: what changed since then may be among them; this reading cannot say whether the mirror has more than the list',
  ])
})
