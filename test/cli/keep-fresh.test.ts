import { expect, it } from 'vitest'
import { keepFresh } from '../../src/cli/refresh/keep-fresh.ts'
import { selectJobs } from '../../src/cli/selection.ts'
import { loadConfig } from '../../src/config/config.ts'
import { createWorkspace, organization } from './workspace.ts'

/** Two lists that are due each ten seconds, and what is asked of the turns until the time. */
async function playTwo(
  until: number,
  options: {
    runs?: (name: string, now: number) => boolean
    others?: (name: string) => boolean
    full?: number
    every?: number
    failsUntil?: number
    /** Before the end of the walk nothing is due. */
    walkedAt?: number
  },
) {
  const { every = 10_000, failsUntil = 0, walkedAt } = options
  const workspace = createWorkspace({
    baseUrl: 'http://127.0.0.1:9',
    organizations: [organization('acme', 1), organization('globex', 2)],
    refresh: { every: `${every}ms`, share: 100 },
  })
  const file = workspace.file('admin-mirror.yaml')
  const config = loadConfig(file, { env: {}, tokens: 'leave', isCron: () => null, nameEnds: [] })
  const stop = new AbortController()
  let now = 0
  const asked: [number, string][] = []
  const begun: [number, string][] = []
  const uses: number[] = []
  const troubles: [number, unknown][] = []
  const jobs = selectJobs(config, { org: [], collection: [] }).map((selected) => ({
    selected,
    scheduled: {
      name: selected.organization.name,
      expression: '',
      timezone: 'UTC',
      dueAtStart: false,
      run: async () => {},
    },
    refresh: async () => {},
  }))
  await keepFresh({
    jobs,
    plan: {
      update: async () => {},
      nextAt(_selected, triedAt) {
        if (walkedAt !== undefined) return now < walkedAt ? null : walkedAt + every
        return triedAt === null ? 10_000 : triedAt + every
      },
      budgetOf: () => 'all',
      useOf({ organization: { name } }) {
        uses.push(now)
        return { organizationId: name, collection: 'orders', budget: 'all', needs: 1000, interval: every }
      },
      async take(due) {
        if (due.length > 0 && now < failsUntil) throw new Error('no turns')
        asked.push(...due.map(({ organizationId }): [number, string] => [now, organizationId]))
        const isOthers = ({ organizationId }: (typeof due)[number]) =>
          options.others?.(organizationId) === true
        return {
          taken: due.filter((one) => !isOthers(one)),
          others: due.filter(isOthers),
          freeAt: new Map(due.map(({ budget }) => [budget, options.full ?? now])),
        }
      },
      mostTaken: Number.POSITIVE_INFINITY,
    },
    scheduler: {
      isRunning: ({ name }) => options.runs?.(name, now) === true,
      runBetween: ({ name }) => void begun.push([now, name]),
    },
    runtime: {
      now: () => now,
      sleep: async (ms) => {
        now += ms
        if (now > until) stop.abort()
      },
    },
    onTrouble: (error) => void troubles.push([now, error]),
    signal: stop.signal,
  })
  return { asked, begun, uses, troubles }
}

it.each([
  [1000, 1000],
  [5000, 5000],
  [300_000, 30_000],
])(
  'a list refreshed every %i ms is refreshed so long after its first walk, and at most %i ms later',
  async (every, late) => {
    const { begun } = await playTwo(400_000, { every, walkedAt: 700 })

    const [[at] = [Number.NaN]] = begun
    expect(at - 700).toBeGreaterThanOrEqual(every)
    expect(at - 700).toBeLessThanOrEqual(every + late)
  },
)

it('a list that this process reads takes no turn, and is refreshed soon after its walk', async () => {
  const { asked, begun } = await playTwo(13_000, { runs: (name, now) => name === 'acme' && now < 12_500 })

  expect(asked).toEqual([
    [10_000, 'globex'],
    [13_000, 'acme'],
  ])
  expect(begun).toEqual(asked)
})

it('a list that another process has is asked for again after a tenth of its interval', async () => {
  const { asked, begun } = await playTwo(12_000, { others: (name) => name === 'acme' })

  expect(asked.filter(([, name]) => name === 'acme').map(([at]) => at)).toEqual([10_000, 11_000, 12_000])
  expect(begun).toEqual([[10_000, 'globex']])
})

it('a list that another process has is asked for again after a minute at the latest', async () => {
  const { asked } = await playTwo(140_000, { others: (name) => name === 'acme', every: 24 * 3_600_000 })

  expect(asked.filter(([, name]) => name === 'acme').map(([at]) => at)).toEqual([10_000, 70_000, 130_000])
})

it('asks for no turn before the share has room, and works out once what each list needs then', async () => {
  const { asked, uses } = await playTwo(29_000, { full: 27_000 })

  expect([...new Set(asked.map(([at]) => at))]).toEqual([10_000, 27_000])
  expect(uses).toEqual([10_000, 10_000, 27_000, 27_000])
})

it('tells once that no turn can be taken, and once that one can be again, not while it asks for none', async () => {
  const { begun, troubles } = await playTwo(60_000, {
    runs: (_name, now) => now >= 15_000 && now < 25_000,
    failsUntil: 35_000,
  })

  const [[refreshedAt] = []] = begun
  expect(refreshedAt).toBeGreaterThanOrEqual(35_000)
  expect(troubles).toEqual([
    [10_000, new Error('no turns')],
    [refreshedAt, null],
  ])
})
