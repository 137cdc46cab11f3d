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

it('of each budget the list is read next that is worth most, as far as its share has room', async () => {
  let now = NOW
  const { config, jobs, kept } = listsOf(3)
  const shares = [{ budgetKey: 'all', at: NOW + 60 * MINUTE, level: 0, version: 1 }]
  const store = { shares: async () => shares, writeShare: async () => true, refreshes: async () => kept }
  const plan = createRefreshPlan({ config, store, budgetOf: () => 'all', now: () => now })
  await plan.update()
  const names = (isTaken: (name: string) => boolean = () => false) =>
    plan.next(({ organization: { name } }) => isTaken(name)).map(({ organization: { name } }) => name)

  expect(names()).toEqual([])
  // The clock was ahead when they were read.
  now -= 24 * 60 * MINUTE
  expect(names()).toEqual(['o0'])
  now += 25 * 60 * MINUTE
  expect(names()).toEqual(['o0'])
  expect(names((name) => name === 'o0')).toEqual(['o1'])
  for (const one of shares) one.level = 1.5 * 6 + 1
  await plan.update()
  expect(names()).toEqual([])
  // What a refresh has saved is known at once.
  for (const one of shares) one.level = 0
  await plan.update()
  const [first] = jobs
  const state = kept[0]?.state
  if (!first || !state) throw new Error('no list')
  plan.policyOf(first)?.note({ ...state, freshness: { ...state.freshness, newestAt: now, bands: [] } })
  expect(names()).toEqual(['o1'])
})
