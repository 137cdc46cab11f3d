import { expect, it } from 'vitest'
import { keepFresh } from '../../../src/cli/keep-fresh.ts'
import { selectJobs } from '../../../src/cli/selection.ts'
import { loadConfig } from '../../../src/config/config.ts'
import { createWorkspace, organization } from '../../helpers/workspace.ts'

interface Play {
  every: string
  until: number
  /** Which list is read next, of those that can be. */
  next: (free: readonly string[], now: number) => string[]
  hasFailed?: boolean
  isRunning?: (name: string, now: number) => boolean
  /** Whether this worker keeps the lists of a budget fresh. */
  hasBudget?: (name: string) => boolean
  /** How long a reading takes. */
  takes?: number
}

/** What is begun of two lists of two budgets until the time, and when it was looked for. */
async function play({ every, until, hasFailed = false, takes = 0, ...how }: Play) {
  const workspace = createWorkspace({
    baseUrl: 'http://127.0.0.1:9',
    organizations: [organization('acme', 1), organization('globex', 2)],
    refresh: { every, share: 100 },
  })
  const file = workspace.file('admin-mirror.yaml')
  const config = loadConfig(file, { env: {}, tokens: 'leave', nameEnds: [] })
  const stop = new AbortController()
  let now = 0
  const begun: [number, string][] = []
  const looks: number[] = []
  const running = new Map<string, number>()
  const jobs = selectJobs(config, { org: [], collection: [] }).map((selected) => ({
    selected,
    scheduled: {
      name: selected.organization.name,
      expression: '',
      timezone: 'UTC',
      dueAtStart: false,
      run: async () => {},
    },
  }))
  await keepFresh({
    jobs,
    read: async () => ({ hasFailed }),
    plan: {
      update: async () => {},
      budgetOf: ({ organization: { name } }) => name,
      next(isTaken) {
        looks.push(now)
        const free = jobs.filter(({ selected }) => !isTaken(selected))
        const names = how.next(
          free.map(({ selected }) => selected.organization.name),
          now,
        )
        return free
          .map(({ selected }) => selected)
          .filter(({ organization: { name } }) => names.includes(name))
      },
    },
    scheduler: {
      ...(how.hasBudget ? { hasBudget: how.hasBudget } : {}),
      isRunning: ({ name }) => how.isRunning?.(name, now) === true || (running.get(name) ?? 0) > now,
      runBetween({ name }, task) {
        begun.push([now, name])
        running.set(name, now + takes)
        void task()
      },
    },
    runtime: {
      now: () => now,
      async sleep(ms, signal) {
        // What was begun may end at once.
        await new Promise((wake) => setImmediate(wake))
        now += signal?.aborted ? 0 : ms
        if (now > until) stop.abort()
      },
    },
    signal: stop.signal,
  })
  return { begun, looks }
}

it.each([
  ['1s', 1000],
  ['5s', 5000],
  ['5m', 5000],
])('with a refresh each %s looks each %i ms at the latest', async (every, latest) => {
  const { looks } = await play({ every, until: 60_000, next: () => [] })

  expect(looks.slice(1, 3)).toEqual([latest, 2 * latest])
})

it('looks at once when a list was read, and for the next of its budget', async () => {
  let left = 4
  const { begun } = await play({ every: '5m', until: 4000, next: () => (left-- > 0 ? ['acme'] : []) })

  expect(begun).toEqual([1, 2, 3, 4].map(() => [0, 'acme']))
})

it('a list that could not be begun is tried again after a minute, and others meanwhile', async () => {
  const { begun } = await play({
    every: '5m',
    until: 60_000,
    hasFailed: true,
    next: (free) => free.slice(0, 1),
  })

  expect(begun).toEqual([
    [0, 'acme'],
    [0, 'globex'],
    [60_000, 'acme'],
    [60_000, 'globex'],
  ])
})

it('leaves lists to themselves that this process reads, and to others those of their budgets', async () => {
  const { begun } = await play({
    every: '5m',
    until: 14_000,
    takes: 1_000_000,
    isRunning: (name, now) => name === 'acme' && now < 12_500,
    next: (free) => [...free],
  })
  const others = await play({
    every: '5m',
    until: 5000,
    takes: 1_000_000,
    hasBudget: (name) => name === 'globex',
    next: (free) => [...free],
  })

  expect(begun.filter(([at]) => at < 15_000)).toEqual([[0, 'globex']])
  expect(others.begun).toEqual([[0, 'globex']])
})
