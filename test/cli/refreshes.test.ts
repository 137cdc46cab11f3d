import { expect, it, onTestFinished } from 'vitest'
import { keepFresh, type KeepFreshOptions } from '../../src/cli/keep-fresh.ts'
import { createRefreshPlan } from '../../src/cli/refresh-plan.ts'
import { selectJobs } from '../../src/cli/selection.ts'
import { loadConfig } from '../../src/config/config.ts'
import { startScheduler } from '../../src/schedule/scheduler.ts'
import { afterFullWalk, scopeText } from '../../src/sync/refresh/state.ts'
import type { PageSource } from '../../src/sync/types.ts'
import { createSteppedClock } from '../helpers/clock.ts'
import { fullWalk } from '../helpers/full-walk.ts'
import { createWorkspace, organization } from '../helpers/workspace.ts'

// When a start refreshes which of its lists. What a list is worth: test/sync/refresh/worth.test.ts.

const NOW = Date.UTC(2026, 10, 20)
const MINUTE = 60_000

interface SceneOptions {
  count?: number
  every?: string
  /** What the organizations say themselves. */
  own?: object
  /** Whether a list could not be begun. */
  fails?: () => Promise<boolean>
  hasBudget?: () => boolean
}

/** Lists of one budget, o0 and o1, of which all was read an hour ago, and their plan; `keep` begins to keep them fresh. */
function createScene({
  count = 2,
  every = '5m',
  own,
  fails = async () => false,
  hasBudget,
}: SceneOptions = {}) {
  const workspace = createWorkspace({
    baseUrl: 'http://127.0.0.1:9',
    organizations: Array.from({ length: count }, (_, index) => organization(`o${index}`, index + 1, own)),
    rateLimit: { scope: 'all', requestsPerMinute: 60 },
    refresh: { every, share: 10 },
  })
  const config = loadConfig(workspace.file('admin-mirror.yaml'), { env: {}, tokens: 'leave' })
  const clock = createSteppedClock(NOW)
  const readAt = NOW - 60 * MINUTE
  const lists = selectJobs(config, { org: [], collection: [] }).map((list) => {
    const walk = { scope: scopeText(list), startedAt: readAt, endedAt: readAt }
    const state = afterFullWalk(null, fullWalk(walk))
    const { id: organizationId, name } = list.organization
    return {
      list,
      // Of its older pages nothing is read.
      kept: { organizationId, collection: 'orders', state: { ...state, bands: [] } },
      name,
      expression: '0 0 1 1 *',
      timezone: 'UTC',
      dueAtStart: false,
      run: async () => {},
    }
  })
  const share = { budgetKey: 'all', at: NOW, level: 0, version: 1 }
  /** When the store was asked. */
  const reads: number[] = []
  const world = { isAway: false }
  const store = {
    shares: async () => [share],
    writeShare: async () => true,
    async refreshes() {
      reads.push(clock.now() - NOW)
      if (world.isAway) throw new Error('away')
      return lists.map(({ kept }) => kept)
    },
  }
  const plan = createRefreshPlan({ config, store, budgetOf: () => 'all', now: clock.now })
  const scheduler = startScheduler(lists, { onOverlap: () => {}, onError: () => {} }, clock)
  const stop = new AbortController()
  onTestFinished(async () => {
    stop.abort()
    await scheduler.stop()
  })
  /** The lists that were begun, each after so many seconds. */
  const begun: string[] = []
  const read: KeepFreshOptions['read'] = async (list) => {
    const { name } = list.organization
    begun.push(`${(clock.now() - NOW) / 1000} ${name}`)
    const kept = lists.find((one) => one.name === name)?.kept
    if ((await fails()) || !kept) return true
    kept.state = { ...kept.state, newestAt: clock.now() }
    plan.policyOf(list)?.note(kept.state)
    return false
  }
  const keep = () => {
    const runtime = { now: clock.now, sleep: (ms: number) => clock.sleep(ms, stop.signal) }
    const budgeted = { ...scheduler, ...(hasBudget && { hasBudget }) }
    void keepFresh({ jobs: lists, read, plan, scheduler: budgeted, runtime, signal: stop.signal })
  }
  return { ...clock, lists, plan, scheduler, share, world, reads, begun, keep }
}

it.each([
  ['1s', [0, 1, 2, 3, 4, 5]],
  ['5s', [0, 2.5, 5]],
  ['5m', [0, 5]],
])('with a refresh each %s a start looks for what is due after %j seconds', async (every, seconds) => {
  const { pass, keep, reads, share } = createScene({ every })
  share.level = 1000
  keep()
  await pass(5000)

  expect(reads).toEqual(seconds.map((second) => second * 1000))
})

it('the newest ends of lists are read one after another, each every so often', async () => {
  const { pass, keep, begun } = createScene()
  keep()
  await pass(9 * MINUTE)

  expect(begun).toEqual(['0 o0', '0 o1', '300 o0', '300 o1'])
})

it('nothing is read of lists whose organization says refresh: false, whatever the setting for all says', async () => {
  const { pass, keep, begun } = createScene({ own: { refresh: false } })
  keep()
  await pass(9 * MINUTE)

  expect(begun).toEqual([])
})

it.each<[string, () => Promise<boolean>]>([
  ['could not be begun', async () => true],
  ['met a defect', () => Promise.reject(new Error('a bug'))],
])('a list that %s is tried again after a minute, and others meanwhile', async (_, fails) => {
  const { pass, keep, begun } = createScene({ fails })
  keep()
  await pass(MINUTE)

  expect(begun).toEqual(['0 o0', '0 o1', '60 o0', '60 o1'])
})

it('nothing is read of a list that this process reads, of a budget that another worker has, or whose share has no room', async () => {
  const [busy, others, full] = [createScene(), createScene({ hasBudget: () => false }), createScene()]
  const ended = Promise.withResolvers<void>()
  for (const job of busy.lists.slice(0, 1)) void busy.scheduler.runBetween(job, () => ended.promise)
  full.share.level = 1.5 * 6 + 1
  for (const { keep, pass } of [busy, others, full]) {
    keep()
    await pass(1)
  }
  ended.resolve()

  expect([busy.begun, others.begun, full.begun]).toEqual([['0 o1'], [], []])
})

it('what a refresh has saved is known at once', async () => {
  const { plan, lists, now } = createScene()
  await plan.update()
  const next = () => plan.next('all', () => false)?.organization.name
  const [first] = lists
  const before = next()
  if (first) plan.policyOf(first.list)?.note({ ...first.kept.state, newestAt: now() })

  expect([before, next()]).toEqual(['o0', 'o1'])
})

it('what many lists keep is read seldom, however many runs ask for it', async () => {
  const { plan, pass, reads, world } = createScene({ count: 150 })
  const updates = async (times: number) => {
    for (let count = 0; count < times; count++) await plan.update().catch(() => {})
  }
  await updates(200)
  await pass(299)
  await updates(200)
  await pass(1)
  world.isAway = true
  await updates(200)

  expect(reads).toEqual([0, 300])
})

it('the share is of the limit that answers announce, and of the configured one until then', () => {
  const { plan, lists } = createScene()
  const [first] = lists
  const perMinute = () => first && plan.policyOf(first.list)?.share.perMinute()

  expect(perMinute()).toBe(6)
  if (first) plan.watch(first.list, { limit: () => 300 } as PageSource)
  expect(perMinute()).toBe(30)
})
