import { selectJobs } from '../../../src/cli/selection.ts'
import { migrate } from '../../../src/store/postgres/migrations/migrate.ts'
import { openQueue } from '../../../src/store/postgres/queue/queue.ts'
import { queueSchema } from '../../../src/store/postgres/queue/schema.ts'
import { connectServer, type Server } from '../../../src/store/postgres/server/server.ts'
import { createTokens } from '../../../src/store/postgres/tokens.ts'
import { scopeText } from '../../../src/sync/refresh/saved.ts'
import { afterFullWalk } from '../../../src/sync/refresh/state.ts'
import { newSchema, type TestServer } from '../../helpers/postgres-server.ts'
import { createVirtualClock } from '../../simulation/clock.ts'
import { createRandom } from '../../simulation/random.ts'
import { BASE_URL, configOf } from '../../simulation/setting.ts'
import { createBudgets } from './budgets.ts'
import { openRefreshingWorker, type Played, type RefreshingWorker } from './refreshing-worker.ts'
import { createPace, REAL_TIME, simulateTime } from './workers.ts'

/** Lists that are refreshed for hours by workers of which some die. */
export interface RefreshSetting {
  name: string
  workers: number
  lists: number
  tokens: number
  /** Requests a minute of each token, and the percent of them that refreshes may use. */
  perMinute: number
  share: number
  every: string
  /** Of full walks. */
  schedule: string
  hours: number
  /** Pages of each list. */
  pages: number
  /** A worker dies, and another one starts, so often. Minutes; null: never. */
  deathEvery: number | null
}

export interface RefreshOutcome {
  setting: RefreshSetting
  /** Of the token with most of them: requests of refreshes in any hour, and as many as its share has in one. */
  most: number
  share: number
  /** Between two refreshes of a list: as planned, the median, and the longest. Milliseconds. */
  interval: number
  medianGap: number
  longestGap: number
  /** Lists that were not refreshed in the last two intervals. */
  starved: number
  refreshes: number
  walks: number
  deaths: number
  /** Turns that another one had used. */
  wasted: number
  statements: number
}

const HOUR = 3_600_000
const START = Date.UTC(2026, 0, 1, 11, 59)
const LATENCY_MS = 200

export async function playRefreshes(
  { url }: Pick<TestServer, 'url'>,
  setting: RefreshSetting,
): Promise<RefreshOutcome> {
  const pace = createPace()
  const clock = createVirtualClock(START, pace.settle)
  const address = newSchema({ url })
  const first = await connectServer(address, REAL_TIME)
  await migrate(first)
  // Makes the schema of the queue.
  await (await openQueue(first, () => {})).close()
  const config = { ...configOf(settingsOf(setting)), database: '' }
  const jobs = selectJobs(config, { org: [], collection: [] })
  await register(first, jobs)
  const setTime = await simulateTime(first)
  const played: Played = {
    clock,
    random: createRandom(1),
    pace,
    address,
    config,
    jobs,
    budgets: createBudgets(clock, { ...setting, latencyMs: LATENCY_MS }),
    requests: [],
    refreshes: [],
    walks: new Map(),
    wasted: 0,
    errors: [],
    pages: setting.pages,
    setTime: () => setTime(clock.now()),
  }
  const workers: RefreshingWorker[] = []
  const open = async () => void workers.push(await openRefreshingWorker(played, START))
  for (let count = 0; count < setting.workers; count++) await open()
  let deaths = 0
  const dieLater = (ms: number) =>
    clock.after(ms, () => {
      deaths++
      const [dead] = workers.splice(0, 1)
      void pace.of(Promise.resolve(dead?.die()).then(open))
      dieLater(ms)
    })
  if (setting.deathEvery !== null) dieLater(setting.deathEvery * 60_000)
  try {
    while (clock.now() < START + setting.hours * HOUR) {
      await clock.settle()
      clock.tick()
    }
    const statements = pace.statements()
    await clock.settle()
    if (played.errors.length > 0) throw new AggregateError(played.errors, String(played.errors[0]))
    return { ...outcomeOf(setting, played, clock.now()), deaths, statements }
  } finally {
    await Promise.all(workers.map((worker) => worker.die()))
    await first.rows(`DROP SCHEMA ${address.schema}, ${queueSchema(address.schema)} CASCADE`)
    await first.close()
  }
}

function settingsOf({ lists, tokens, perMinute, share, every, schedule }: RefreshSetting): object {
  return {
    api: { baseUrl: BASE_URL },
    rateLimit: { requestsPerMinute: perMinute },
    refresh: { every, share },
    schedule,
    collections: { establishments: false },
    organizations: Array.from({ length: lists }, (_, index) => ({
      id: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
      name: `o${index}`,
      token: `token-${index % tokens}`,
    })),
  }
}

/** All lists were read whole an hour ago, so that all of their refreshes are due now. */
async function register(server: Server, jobs: Played['jobs']): Promise<void> {
  const tokens = await createTokens(
    server,
    { now: () => START, elapsed: () => 0, compare: () => () => true, sureAt: () => 0 },
    () => 'salt',
  )
  await tokens.register(jobs.map(({ organization }) => ({ ...organization, collections: ['orders'] })))
  const walk = {
    startedAt: START - HOUR,
    endedAt: START - HOUR,
    // The page and one request more, and no older ones.
    lastPage: 1,
    totals: { first: 1, last: 1 },
    isSteady: true,
    rowsAdded: { first: 0, last: 1 },
  }
  const states = jobs.map(({ job }) =>
    JSON.stringify(afterFullWalk(null, { ...walk, scope: scopeText(job) })),
  )
  await server.rows(
    'UPDATE sync_jobs SET refresh = state FROM unnest($1::text[], $2::text[]) AS one (id, state) WHERE organization_id = id',
    [jobs.map(({ organization }) => organization.id), states],
  )
}

function outcomeOf(
  setting: RefreshSetting,
  { requests, refreshes, walks, wasted, jobs }: Played,
  end: number,
): Omit<RefreshOutcome, 'deaths' | 'statements'> {
  const byToken = [...Map.groupBy(requests, ({ token }) => token).values()]
  const allowed = (setting.perMinute * setting.share) / 100
  const interval = Math.max(...refreshes.map((one) => one.interval))
  const byList = Map.groupBy(refreshes, ({ list }) => list)
  const gaps = [...byList.values()]
    .flatMap((all) => all.slice(1).map(({ at }, index) => at - (all[index]?.at ?? at)))
    .toSorted((one, other) => one - other)
  const isStarved = ({ organization }: Played['jobs'][number]) =>
    !(byList.get(organization.id) ?? []).some(({ at }) => at >= end - 2 * interval)
  return {
    setting,
    most: Math.max(...byToken.map((all) => mostInAnHour(all.map(({ at }) => at)))),
    share: allowed * 60,
    interval,
    medianGap: gaps[Math.floor(gaps.length / 2)] ?? Number.NaN,
    longestGap: gaps.at(-1) ?? Number.NaN,
    starved: jobs.filter(isStarved).length,
    refreshes: refreshes.length,
    walks: [...walks.values()].reduce((sum, { completed }) => sum + completed, 0),
    wasted,
  }
}

function mostInAnHour(times: readonly number[]): number {
  let first = 0
  const counts = times.map((at, index) => {
    while (at - (times[first] ?? at) >= HOUR) first++
    return index - first + 1
  })
  return Math.max(...counts)
}
