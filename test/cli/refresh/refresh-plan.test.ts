import { expect, it } from 'vitest'
import { createRefreshPlan } from '../../../src/cli/refresh-plan.ts'
import { type SelectedJob, selectJobs } from '../../../src/cli/selection.ts'
import { loadConfig } from '../../../src/config/config.ts'
import { afterFullWalk, scopeText } from '../../../src/sync/refresh/state.ts'
import type { PageSource } from '../../../src/sync/types.ts'
import { createWorkspace, organization } from '../../helpers/workspace.ts'

const MINUTE = 60_000
const NOW = Date.UTC(2026, 10, 20)

/** Of a list that was read whole for the first time just now. */
const stateOf = ({ job }: SelectedJob) =>
  afterFullWalk(null, {
    startedAt: NOW,
    endedAt: NOW,
    lastPage: 10,
    totals: { first: 250, last: 250 },
    coverage: 'steady',
    grewAt: null,
    rowsAdded: { first: 0, last: 250 },
    scope: scopeText(job),
  })

/** Such lists that share a budget, and their plan. */
function planOf(count: number) {
  const workspace = createWorkspace({
    baseUrl: 'http://127.0.0.1:9',
    organizations: Array.from({ length: count }, (_, index) => organization(`o${index}`, index + 1)),
    rateLimit: { scope: 'all', requestsPerMinute: 60 },
    refresh: { every: '1m', share: 10 },
  })
  const config = loadConfig(workspace.file('admin-mirror.yaml'), { env: {}, tokens: 'leave' })
  const jobs = selectJobs(config, { org: [], collection: [] }) as [SelectedJob, ...SelectedJob[]]
  const kept = jobs.map((selected) => ({
    organizationId: selected.organization.id,
    collection: 'orders',
    state: stateOf(selected),
  }))
  const share = { budgetKey: 'all', at: NOW + 60 * MINUTE, level: 0, version: 1 }
  const world = { now: NOW, reads: 0, isAway: false }
  const store = {
    shares: async () => [share],
    writeShare: async () => true,
    async refreshes() {
      world.reads++
      if (world.isAway) throw new Error('away')
      return kept
    },
  }
  const plan = createRefreshPlan({ config, store, budgetOf: () => 'all', now: () => world.now })
  return { plan, world, share, first: jobs[0] }
}

it('what many lists keep is read seldom, however many runs ask for it', async () => {
  const { plan, world } = planOf(150)
  const readsFor = async (runs: number, pause: number) => {
    const before = world.reads
    world.now += pause
    for (let run = 0; run < runs; run++) await plan.update().catch(() => {})
    return world.reads - before
  }

  expect([await readsFor(200, 0), await readsFor(200, 299), await readsFor(200, 1)]).toEqual([1, 0, 1])
  world.isAway = true
  expect([await readsFor(3, 300), await readsFor(3, 300)]).toEqual([1, 1])
})

it('of a budget the list is read next that is worth most, as far as its share has room', async () => {
  const { plan, world, share, first } = planOf(3)
  await plan.update()
  const next = (taken?: string) =>
    plan.next('all', ({ organization: { name } }) => name === taken)?.organization.name
  const levelIs = async (level: number) => {
    share.level = level
    world.now += 10
    await plan.update()
  }

  expect(plan.budgets).toEqual(['all'])
  expect(next()).toBeUndefined()
  // The clock was ahead when they were read.
  world.now -= 24 * 60 * MINUTE
  expect(next()).toBe('o0')
  world.now += 25 * 60 * MINUTE
  expect([next(), next('o0')]).toEqual(['o0', 'o1'])
  await levelIs(1.5 * 6 + 1)
  expect(next()).toBeUndefined()
  // What a refresh has saved is known at once.
  await levelIs(0)
  plan.policyOf(first)?.note({ ...stateOf(first), newestAt: world.now, bands: [] })
  expect(next()).toBe('o1')
})

it('the share is of the limit that answers announce, and of the configured one until then', () => {
  const { plan, first } = planOf(1)
  const perMinute = () => plan.policyOf(first)?.share.perMinute()

  expect(perMinute()).toBe(6)
  plan.watch(first.organization, { limit: () => 300 } as PageSource)

  expect(perMinute()).toBe(30)
})
