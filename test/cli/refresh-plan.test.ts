import { expect, it } from 'vitest'
import { createRefreshPlan } from '../../src/cli/refresh/refresh-plan.ts'
import { selectJobs } from '../../src/cli/selection.ts'
import { loadConfig } from '../../src/config/config.ts'
import { scopeText } from '../../src/sync/refresh/refresher.ts'
import { afterFullWalk } from '../../src/sync/refresh/state.ts'
import { createWorkspace, organization } from './workspace.ts'

const MINUTE = 60_000
const NOW = Date.UTC(2026, 10, 20)

function jobsOf(count: number) {
  const workspace = createWorkspace({
    baseUrl: 'http://127.0.0.1:9',
    organizations: Array.from({ length: count }, (_, index) => organization(`o${index}`, index + 1)),
    rateLimit: { scope: 'all', requestsPerMinute: 60 },
    refresh: { every: '1m', share: 10 },
  })
  const config = loadConfig(workspace.file('admin-mirror.yaml'), {
    env: {},
    tokens: 'leave',
    isCron: () => null,
    nameEnds: [],
  })
  return { config, jobs: selectJobs(config, { org: [], collection: [] }) }
}

it('what many lists keep is read seldom, however many runs ask for it', async () => {
  const { config, jobs } = jobsOf(150)
  let now = NOW
  let reads = 0
  let isAway = false
  const refreshes = async () => {
    reads++
    if (isAway) throw new Error('away')
    return jobs.map(({ job }) => ({
      organizationId: job.organization.id,
      collection: job.collection.name,
      state: afterFullWalk(null, {
        startedAt: NOW,
        endedAt: NOW,
        lastPage: 10,
        totals: { first: 250, last: 250 },
        rowsAdded: { first: 0, last: 250 },
        scope: scopeText(job),
      }),
    }))
  }
  const plan = createRefreshPlan({ config, store: { refreshes }, budgetOf: () => 'all', now: () => now })
  const readsFor = async (runs: number) => {
    const before = reads
    for (let run = 0; run < runs; run++) await plan.update().catch(() => {})
    return reads - before
  }

  expect(await readsFor(200)).toBe(1)
  now += 299
  expect(await readsFor(200)).toBe(0)
  now += 1
  expect(await readsFor(200)).toBe(1)
  isAway = true
  now += 300
  expect(await readsFor(3)).toBe(3)
})

it('a try that left no trace in the mirror is repeated as rarely as the share of all lists allows', async () => {
  const { config, jobs } = jobsOf(50)
  const walked = {
    startedAt: NOW,
    endedAt: NOW,
    lastPage: 10,
    totals: { first: 250, last: 250 },
    rowsAdded: { first: 0, last: 250 },
  }
  const refreshes = async () =>
    jobs.map(({ job }) => ({
      organizationId: job.organization.id,
      collection: job.collection.name,
      state: afterFullWalk(null, { ...walked, scope: scopeText(job) }),
    }))
  const plan = createRefreshPlan({ config, store: { refreshes }, budgetOf: () => 'all', now: () => NOW })
  await plan.update()
  const [selected] = jobs
  if (!selected) throw new Error('no job')

  const interval = (plan.nextAt(selected, null) ?? 0) - NOW
  const again = plan.nextAt(selected, NOW + interval)

  expect(interval).toBeGreaterThan(10 * MINUTE)
  expect(again).toBe(NOW + 2 * interval)
})
