import { expect, it } from 'vitest'
import { type KeepFreshOptions, keepFresh } from '../../../src/cli/keep-fresh.ts'
import { selectJobs } from '../../../src/cli/selection.ts'
import { loadConfig } from '../../../src/config/config.ts'
import { createWorkspace, organization } from '../../helpers/workspace.ts'

interface Play {
  every?: string
  until: number
  /** Whether anything is due; it is the first list that can be read. */
  isDue: () => boolean
  hasFailed?: boolean
  isRunning?: (name: string, now: number) => boolean
  hasBudget?: () => boolean
}

const always = () => true
const never = async () => {}

/** When lists of one budget, acme and globex, were begun until the time, and when they were looked for. */
async function play({ every = '5m', until, isDue, hasFailed = false, isRunning, hasBudget }: Play) {
  const workspace = createWorkspace({
    baseUrl: 'http://127.0.0.1:9',
    organizations: [organization('acme', 1), organization('globex', 2)],
    refresh: { every, share: 100 },
  })
  const file = workspace.file('admin-mirror.yaml')
  const config = loadConfig(file, { env: {}, tokens: 'leave' })
  const jobs = selectJobs(config, { org: [], collection: [] }).map((selected) => {
    const { name } = selected.organization
    return { selected, scheduled: { name, expression: '', timezone: 'UTC', dueAtStart: false, run: never } }
  })
  const stop = new AbortController()
  let now = 0
  let reading: string | null = null
  const begun: [number, string][] = []
  const looks: number[] = []
  const next: KeepFreshOptions['plan']['next'] = (_budget, isTaken) => {
    looks.push(now)
    const free = jobs.map(({ selected }) => selected).find((selected) => !isTaken(selected))
    return (isDue() && free) || null
  }
  await keepFresh({
    jobs,
    read: async () => hasFailed,
    plan: { update: async () => {}, budgets: ['all'], next },
    scheduler: {
      ...(hasBudget ? { hasBudget } : {}),
      isRunning: ({ name }) => isRunning?.(name, now) === true || reading === name,
      runBetween({ name }, task) {
        begun.push([now, name])
        reading = name
        void task().finally(() => {
          reading = null
        })
      },
    },
    runtime: {
      now: () => now,
      async sleep(ms) {
        await new Promise((wake) => setImmediate(wake))
        now += ms
        if (now > until) stop.abort()
      },
    },
    signal: stop.signal,
  })
  return { begun, looks }
}

it.each([
  ['1s', 1000],
  ['5s', 2500],
  ['5m', 5000],
])('with a refresh each %s looks each %i ms at the latest', async (every, latest) => {
  const { looks } = await play({ every, until: 2 * latest, isDue: () => false })

  expect(looks).toEqual([0, latest, 2 * latest])
})

it('looks at once when a list was read', async () => {
  let left = 4
  const { begun } = await play({ until: 4000, isDue: () => left-- > 0 })

  expect(begun).toEqual([1, 2, 3, 4].map(() => [0, 'acme']))
})

it('a list that could not be begun is tried again after a minute, and others meanwhile', async () => {
  const { begun } = await play({ until: 60_000, hasFailed: true, isDue: always })

  expect(begun).toEqual([
    [0, 'acme'],
    [0, 'globex'],
    [60_000, 'acme'],
    [60_000, 'globex'],
  ])
})

it('leaves lists to themselves that this process reads, and to others those of their budgets', async () => {
  const { begun } = await play({
    until: 0,
    hasFailed: true,
    isDue: always,
    isRunning: (name) => name === 'acme',
  })
  const others = await play({ until: 0, isDue: always, hasBudget: () => false })

  expect(begun).toEqual([[0, 'globex']])
  expect(others.begun).toEqual([])
})
