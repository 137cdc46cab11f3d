import { expect, it } from 'vitest'
import { createRefreshPlan } from '../../src/cli/refresh/refresh-plan.ts'
import { selectJobs } from '../../src/cli/selection.ts'
import { loadConfig } from '../../src/config/config.ts'
import { scopeText } from '../../src/sync/refresh/refresher.ts'
import { afterFullWalk } from '../../src/sync/refresh/state.ts'
import { createWorkspace, organization } from './workspace.ts'

const MINUTE = 60_000
const NOW = Date.UTC(2026, 10, 20)

/** Fifty lists that share a budget, read whole for the first time just now. */
async function planOfFifty() {
  const workspace = createWorkspace({
    baseUrl: 'http://127.0.0.1:9',
    organizations: Array.from({ length: 50 }, (_, index) => organization(`o${index}`, index + 1)),
    rateLimit: { scope: 'all', requestsPerMinute: 60 },
    refresh: { every: '1m', share: 10 },
  })
  const config = loadConfig(workspace.file('admin-mirror.yaml'), {
    env: {},
    tokens: 'leave',
    isCron: () => null,
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
  return { plan, selected, jobs }
}

it('a try that left no trace in the mirror is repeated as rarely as the share of all lists allows', async () => {
  const { plan, selected } = await planOfFifty()

  const interval = (plan.nextAt(selected, null) ?? 0) - NOW
  const again = plan.nextAt(selected, NOW + interval)

  expect(interval).toBeGreaterThan(10 * MINUTE)
  expect(again).toBe(NOW + 2 * interval)
})

it('what a refresh of a list has just cost counts at once, beside what is known of the others', async () => {
  const { plan, selected, jobs } = await planOfFifty()
  const policy = plan.policyOf(selected)
  const others = jobs.slice(1).map(() => null)

  expect(policy?.costs(null)).toEqual([null, ...others])
  expect(policy?.costs(70)).toEqual([70, ...others])
})
