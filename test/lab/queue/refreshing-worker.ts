import { startSharing } from '../../../src/cli/postgres/start-sharing.ts'
import { keepFresh } from '../../../src/cli/refresh/keep-fresh.ts'
import { createRefreshPlan } from '../../../src/cli/refresh/refresh-plan.ts'
import type { SelectedJob } from '../../../src/cli/selection.ts'
import type { CommandSession, HowToRun } from '../../../src/cli/with-session.ts'
import type { Config } from '../../../src/config/config.ts'
import { allRefreshes, readShares, writeShare } from '../../../src/store/core/jobs.ts'
import { POSTGRES, runRule } from '../../../src/store/postgres/driver.ts'
import { abandonedJobs, createLeases, isOwned, takeFreeLists } from '../../../src/store/postgres/leases.ts'
import { openQueue } from '../../../src/store/postgres/queue/queue.ts'
import type { PostgresAddress } from '../../../src/store/postgres/server/pool.ts'
import { connectServer } from '../../../src/store/postgres/server/server.ts'
import type { JobResult } from '../../../src/sync/job.ts'
import { newestDueAt, newestInterval } from '../../../src/sync/refresh/due.ts'
import { mayBegin, priceOf } from '../../../src/sync/refresh/price.ts'
import type { RefreshState } from '../../../src/sync/refresh/state.ts'
import { lockName } from '../../helpers/lock-name.ts'
import type { VirtualClock } from '../../simulation/clock.ts'
import type { Random } from '../../simulation/random.ts'
import type { Budgets } from './budgets.ts'
import { inSimulation, type Pace, REAL_TIME } from './workers.ts'

// A worker whose decisions, queue, leases and turns are the real ones. Its readings are made up: they take requests, and write
// when they were.

/** What all workers of a play have in common. */
export interface Played {
  clock: VirtualClock
  random: Random
  pace: Pace
  address: PostgresAddress
  config: Config
  jobs: readonly SelectedJob[]
  budgets: Budgets
  /** The server's clock is the simulation's. */
  setTime: () => Promise<void>
  pages: number
  /** Of refreshes. */
  requests: { token: string; at: number }[]
  refreshes: { list: string; at: number; interval: number }[]
  walks: Map<
    string,
    { completed: number; completedAt: number | null; startedAt: number | null; unfinished: boolean }
  >
  wasted: number
  errors: unknown[]
}

export interface RefreshingWorker {
  /** From now on it does nothing, and the server drops its connections. */
  die(): Promise<void>
}

/** Requests of a refresh. */
const COST = 2

/** `startedAt`: when all lists were read whole. */
export async function openRefreshingWorker(played: Played, startedAt: number): Promise<RefreshingWorker> {
  const { clock, pace, address, config, jobs, budgets, setTime } = played
  const { random, requests, refreshes, walks, errors } = played

  let isDead = false
  const never = new Promise<never>(() => {})
  const alive = async <T>(answer: Promise<T>): Promise<T> => {
    if (isDead) return never
    const result = await answer
    return isDead ? never : result
  }
  const ask = async <T>(task: () => Promise<T>): Promise<T> => (isDead ? never : alive(pace.of(task())))
  const sleep = (ms: number) => alive(new Promise<void>((wake) => clock.after(Math.max(1, ms), wake)))

  const server = await connectServer(address, REAL_TIME)
  const leases = await createLeases(server, lockName())
  const queue = await openQueue(server, (error) => errors.push(error))
  const budgetOf = ({ id }: Pick<SelectedJob['organization'], 'id'>) =>
    jobs.find(({ organization }) => organization.id === id)?.organization.readToken() ?? id
  const plan = createRefreshPlan({
    config,
    store: {
      refreshes: () => ask(() => runRule(server, allRefreshes())),
      shares: (scopes) => ask(() => runRule(server, readShares(POSTGRES, scopes))),
      writeShare: (share) => ask(() => runRule(server, writeShare(share))),
    },
    budgetOf,
    now: clock.now,
  })

  async function request(token: string, isRefresh: boolean): Promise<void> {
    await alive(budgets.request(token))
    if (isRefresh) requests.push({ token, at: clock.now() })
  }

  async function readState(id: string): Promise<RefreshState> {
    const text = 'SELECT refresh FROM sync_jobs WHERE organization_id = $1'
    const [row] = await ask(() => server.rows<{ refresh: string }>(text, [id]))
    return JSON.parse(row?.refresh ?? '{}') as RefreshState
  }

  const keep = (id: string, state: RefreshState) =>
    ask(() =>
      server.rows('UPDATE sync_jobs SET refresh = $2 WHERE organization_id = $1', [
        id,
        JSON.stringify(state),
      ]),
    )

  async function refresh(
    { organization }: SelectedJob,
    interval: number,
    state: RefreshState,
  ): Promise<void> {
    const at = clock.now()
    refreshes.push({ list: organization.id, at, interval })
    await keep(organization.id, { ...state, triedAt: at })
    for (let page = 0; page < COST; page++) await request(organization.readToken(), true)
    await keep(organization.id, { ...state, triedAt: at, startedAt: at })
  }

  /** False where none was due, or the share had no room. */
  async function refreshIfDue(selected: SelectedJob): Promise<boolean> {
    const state = await readState(selected.organization.id)
    const policy = plan.policyOf(selected)
    if (!policy) return false
    let interval = 0
    const charged = await policy.share.take((share) => {
      const price = priceOf(share)
      interval = newestInterval(state, policy, price)
      const isDue = newestDueAt(state, policy, price, clock.now()) <= clock.now()
      return isDue && mayBegin(share, policy.share.rules(), 'newest') ? COST : 0
    })
    if (charged > 0) await refresh(selected, interval, state)
    return charged > 0
  }

  async function walk(selected: SelectedJob): Promise<void> {
    const { id } = selected.organization
    const known = walks.get(id) ?? { completed: 0, completedAt: null, startedAt: null, unfinished: false }
    const at = clock.now()
    walks.set(id, { ...known, startedAt: at, unfinished: true })
    for (let page = 0; page < played.pages; page++) {
      await request(selected.organization.readToken(), false)
      await refreshIfDue(selected)
    }
    const state = await readState(id)
    await keep(id, { ...state, startedAt: Math.max(state.startedAt, at) })
    walks.set(id, { completed: known.completed + 1, completedAt: at, startedAt: at, unfinished: false })
  }

  async function run(
    [selected]: readonly SelectedJob[],
    how: Pick<HowToRun, 'instead'>,
  ): Promise<JobResult[]> {
    if (!selected) return []
    const { id } = selected.organization
    if (!(await ask(() => leases.lock(id, 'orders')))) return [{ error: { code: 'BUSY' } } as JobResult]
    const own = (owner: string | null) =>
      ask(() => server.rows('UPDATE sync_jobs SET owner = $2 WHERE organization_id = $1', [id, owner]))
    await own(leases.name)
    if (how.instead === 'due') played.wasted += (await refreshIfDue(selected)) ? 0 : 1
    else await walk(selected)
    await own(null)
    await ask(() => leases.unlock(id, 'orders'))
    return [{ error: null } as JobResult]
  }

  const runtime = { now: clock.now, sleep, random: random.fork().next }
  const scheduled = jobs.map(({ organization }) => ({
    name: organization.name,
    expression: organization.schedule,
    timezone: 'UTC',
    dueAtStart: false,
    run: async () => {},
  }))
  const signal = new AbortController().signal
  const session = {
    now: clock.now,
    budgetOf,
    logger: { warn: (...line: unknown[]) => errors.push(new Error(JSON.stringify(line))) },
    tokens: {
      lastRuns: async (id: string) =>
        walks.get(id) ?? { completedAt: startedAt, startedAt: null, unfinished: false },
    },
    runJobs: run,
  } as unknown as CommandSession
  const scheduler = await startSharing(
    {
      openQueue: async () =>
        inSimulation(queue, { of: (answer) => alive(pace.of(answer)) }, () => (isDead ? never : setTime())),
      abandonedJobs: () => ask(() => abandonedJobs(server)),
      isOwned: (...job) => ask(() => isOwned(server, ...job)),
      takeFreeLists: (lists) => ask(() => takeFreeLists(server, lists, clock.now())),
    },
    {
      config,
      runtime: runtime as unknown as Parameters<typeof startSharing>[1]['runtime'],
      jobs,
      scheduled,
      session,
      events: { onOverlap: () => {}, onError: (_name, error) => errors.push(error) },
      signal,
      onResult: () => {},
    },
  )
  void keepFresh({
    jobs: jobs.map((selected, index) => ({
      selected,
      scheduled: scheduled[index] as (typeof scheduled)[number],
      refresh: async () => {
        await run([selected], { instead: 'due' })
      },
      walk: async () => {},
    })),
    plan,
    takeFree: (lists) => ask(() => takeFreeLists(server, lists, clock.now())),
    scheduler,
    runtime: { now: clock.now, sleep },
    onTrouble: () => {},
    signal,
  }).catch((error: unknown) => errors.push(error))
  return {
    async die() {
      isDead = true
      await queue.close()
      await leases.close()
      await server.close()
    },
  }
}
