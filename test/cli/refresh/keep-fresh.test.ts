import { expect, it } from 'vitest'
import { type KeepFreshOptions, keepFresh } from '../../../src/cli/keep-fresh.ts'
import { selectJobs } from '../../../src/cli/selection.ts'
import { loadConfig } from '../../../src/config/config.ts'
import { createWorkspace, organization } from '../../helpers/workspace.ts'

interface Play {
  every?: string
  until?: number
  /** Whether anything is due: the first list that can be read. */
  isDue?: () => boolean
  hasFailed?: boolean
  /** Of which list this process is doing something else. */
  busy?: string
  hasBudget?: () => boolean
}

const nothing = async () => {}

/** When lists of one budget, acme and globex, were begun until the time, and when they were looked for. */
async function play({
  every = '5m',
  until = 0,
  isDue = () => true,
  hasFailed = false,
  busy,
  hasBudget,
}: Play) {
  const workspace = createWorkspace({
    baseUrl: 'http://127.0.0.1:9',
    organizations: [organization('acme', 1), organization('globex', 2)],
    refresh: { every, share: 100 },
  })
  const config = loadConfig(workspace.file('admin-mirror.yaml'), { env: {}, tokens: 'leave' })
  const jobs = selectJobs(config, { org: [], collection: [] }).map((selected) => {
    const { name } = selected.organization
    return { selected, scheduled: { name, expression: '', timezone: 'UTC', dueAtStart: false, run: nothing } }
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
    plan: { update: nothing, budgets: ['all'], next },
    scheduler: {
      ...(hasBudget ? { hasBudget } : {}),
      isRunning: ({ name }) => busy === name || reading === name,
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
])(
  'a refresh each %s has a start look each %i ms at the latest, and at once when a list was read',
  async (every, latest) => {
    const isDue = [false, true, false]

    const { looks } = await play({ every, until: 2 * latest, isDue: () => isDue.shift() ?? false })

    expect(looks).toEqual([0, latest, latest, 2 * latest])
  },
)

it('a list that could not be begun is tried again after a minute, and others meanwhile', async () => {
  const { begun } = await play({ until: 60_000, hasFailed: true })

  expect(begun.map((one) => one.join(' '))).toEqual(['0 acme', '0 globex', '60000 acme', '60000 globex'])
})

it('a list is left alone that this process reads, and those of a budget that another worker has', async () => {
  expect((await play({ hasFailed: true, busy: 'acme' })).begun).toEqual([[0, 'globex']])
  expect((await play({ hasBudget: () => false })).begun).toEqual([])
})
