import { expect, it } from 'vitest'
import { createRefreshPlan } from '../../../src/cli/refresh-plan.ts'
import { selectJobs } from '../../../src/cli/selection.ts'
import { loadConfig } from '../../../src/config/config.ts'
import { afterFullWalk, scopeText } from '../../../src/sync/refresh/state.ts'
import { createWorkspace, organization } from '../../helpers/workspace.ts'

const MINUTE = 60_000
const NOW = Date.UTC(2026, 10, 20)

/** Lists that share a budget, and what they keep: read whole for the first time just now. */
function listsOf(count: number) {
  const workspace = createWorkspace({
    baseUrl: 'http://127.0.0.1:9',
    organizations: Array.from({ length: count }, (_, index) => organization(`o${index}`, index + 1)),
    rateLimit: { scope: 'all', requestsPerMinute: 60 },
    refresh: { every: '1m', share: 10 },
  })
  const config = loadConfig(workspace.file('admin-mirror.yaml'), {
    env: {},
    tokens: 'leave',
    nameEnds: [],
  })
  const jobs = selectJobs(config, { org: [], collection: [] })
  const walked = {
    startedAt: NOW,
    endedAt: NOW,
    lastPage: 10,
    totals: { first: 250, last: 250 },
    isSteady: true,
    rowsAdded: { first: 0, last: 250 },
  }
  const kept = jobs.map(({ job }) => ({
    organizationId: job.organization.id,
    collection: job.collection.name,
    state: afterFullWalk(null, { ...walked, scope: scopeText(job) }),
  }))
  return { config, jobs, kept }
}

const NO_SHARES = { shares: async () => [], writeShare: async () => true }

it('what many lists keep is read seldom, however many runs ask for it', async () => {
  const { config, kept } = listsOf(150)
  let now = NOW
  let reads = 0
  let isAway = false
  const refreshes = async () => {
    reads++
    if (isAway) throw new Error('away')
    return kept
  }
  const plan = createRefreshPlan({
    config,
    store: { ...NO_SHARES, refreshes },
    budgetOf: () => 'all',
    now: () => now,
  })
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

it('a list that could not be begun is tried again as rarely as one is refreshed', async () => {
  let now = NOW
  const { config, jobs, kept } = listsOf(50)
  const store = { ...NO_SHARES, refreshes: async () => kept }
  const plan = createRefreshPlan({ config, store, budgetOf: () => 'all', now: () => now })
  await plan.update()
  const [selected] = jobs
  if (!selected) throw new Error('no job')
  const look = (failedAt?: number) =>
    plan.due([{ selected, isRead: false, failed: failedAt === undefined ? {} : { newest: failedAt } }])

  expect(look()).toEqual([])
  now += 60 * MINUTE
  expect(look()).toMatchObject([{ reads: 'newest' }])
  expect(look(now)).toEqual([])
  // The clock was set back since.
  expect(look(now + 1)).toMatchObject([{ reads: 'newest' }])
})
