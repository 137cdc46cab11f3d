import { expect, it } from 'vitest'
import { createRefreshPlan } from '../../../src/cli/refresh-plan.ts'
import { selectJobs } from '../../../src/cli/selection.ts'
import { loadConfig } from '../../../src/config/config.ts'
import { afterFullWalk, scopeText } from '../../../src/sync/refresh/state.ts'
import type { PageSource } from '../../../src/sync/types.ts'
import { createWorkspace, organization } from '../../helpers/workspace.ts'

const MINUTE = 60_000
const NOW = Date.UTC(2026, 10, 20)

/** Lists that share a budget, read whole for the first time just now, and their plan. */
function planOf(count: number) {
  const workspace = createWorkspace({
    baseUrl: 'http://127.0.0.1:9',
    organizations: Array.from({ length: count }, (_, index) => organization(`o${index}`, index + 1)),
    rateLimit: { scope: 'all', requestsPerMinute: 60 },
    refresh: { every: '1m', share: 10 },
  })
  const config = loadConfig(workspace.file('admin-mirror.yaml'), { env: {}, tokens: 'leave' })
  const jobs = selectJobs(config, { org: [], collection: [] })
  const totals = { first: 250, last: 250 }
  const rowsAdded = { first: 0, last: 250 }
  const walked = {
    startedAt: NOW,
    endedAt: NOW,
    lastPage: 10,
    totals,
    coverage: 'steady',
    grewAt: null,
    rowsAdded,
  } as const
  const kept = jobs.map(({ job }) => ({
    organizationId: job.organization.id,
    collection: job.collection.name,
    state: afterFullWalk(null, { ...walked, scope: scopeText(job) }),
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
  return { plan, world, share, jobs, kept }
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
  const { plan, world, share, jobs, kept } = planOf(3)
  await plan.update()
  const next = (taken?: string) =>
    plan.next('all', ({ organization: { name } }) => name === taken)?.organization.name

  expect(plan.budgets).toEqual(['all'])
  expect(next()).toBeUndefined()
  // The clock was ahead when they were read.
  world.now -= 24 * 60 * MINUTE
  expect(next()).toBe('o0')
  world.now += 25 * 60 * MINUTE
  expect(next()).toBe('o0')
  expect(next('o0')).toBe('o1')
  share.level = 1.5 * 6 + 1
  world.now += 10
  await plan.update()
  expect(next()).toBeUndefined()
  // What a refresh has saved is known at once.
  share.level = 0
  world.now += 10
  await plan.update()
  const [[first], [one]] = [jobs, kept]
  if (!first || !one) throw new Error('no list')
  plan.policyOf(first)?.note({ ...one.state, newestAt: world.now, bands: [] })
  expect(next()).toBe('o1')
})

it('the share is of the limit that answers announce, and of the configured one until then', () => {
  const { plan, jobs } = planOf(1)
  const [first] = jobs
  const perMinute = () => first && plan.policyOf(first)?.share.perMinute()

  expect(perMinute()).toBe(6)
  const source = { limit: () => 300 } as PageSource
  if (first) plan.watch(first.organization, source)

  expect(perMinute()).toBe(30)
})
