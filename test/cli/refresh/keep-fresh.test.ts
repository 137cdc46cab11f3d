import { expect, it } from 'vitest'
import { keepFresh } from '../../../src/cli/keep-fresh.ts'
import type { PlannedList } from '../../../src/cli/refresh-plan.ts'
import { selectJobs } from '../../../src/cli/selection.ts'
import { loadConfig } from '../../../src/config/config.ts'
import type { Reads } from '../../../src/sync/refresh/due.ts'
import { createWorkspace, organization } from '../../helpers/workspace.ts'

interface Play {
  every: string
  until: number
  /** What is due of a list; `begun`: how often it was begun before. */
  due: (name: string, now: number, begun: number, failed: PlannedList['failed']) => Reads | null
  hasFailed?: boolean
  isRunning?: (name: string, now: number) => boolean
  isFree?: (name: string) => boolean
  failsUntil?: number
}

/** What is begun of two lists until the time, and when it was looked for. */
async function play({ every, until, failsUntil = 0, hasFailed = false, ...how }: Play) {
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
  }))
  await keepFresh({
    jobs,
    read: async () => ({ hasFailed }),
    plan: {
      update: async () => {},
      due(lists) {
        looks.push(now)
        return lists.flatMap((list) => {
          const { name } = list.selected.organization
          const times = begun.filter(([, other]) => other === name).length
          const reads = list.isRead ? null : how.due(name, now, times, list.failed)
          return reads ? [{ list, reads }] : []
        })
      },
    },
    async takeFree(lists) {
      if (now < failsUntil) throw new Error('no server')
      const nameOf = new Map(jobs.map(({ selected: { organization: one } }) => [one.id, one.name]))
      return lists.filter(({ organizationId }) => how.isFree?.(nameOf.get(organizationId) ?? '') ?? true)
    },
    scheduler: {
      isRunning: ({ name }) => how.isRunning?.(name, now) === true,
      runBetween({ name }, task) {
        begun.push([now, name])
        void task()
      },
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
  return { begun, looks, troubles }
}

const once =
  (at: number): Play['due'] =>
  (_name, now, begun) =>
    now >= at && begun === 0 ? 'newest' : null

it.each([
  ['1s', 1000],
  ['5s', 5000],
  ['5m', 5000],
])('with a refresh each %s looks each %i ms at the latest', async (every, latest) => {
  const { looks } = await play({ every, until: 60_000, due: () => null })

  expect(looks.slice(1, 3)).toEqual([latest, 2 * latest])
})

it.each([
  { hasFailed: false, told: [{}, {}, {}] },
  { hasFailed: true, told: [{}, { older: 0 }, { older: 0, newest: 5000 }] },
])('tells the plan what has failed, and when: $hasFailed', async ({ hasFailed, told }) => {
  const heard: unknown[] = []
  const due: Play['due'] = (name, now, _begun, failed) => {
    if (name === 'acme') heard.push({ ...failed })
    return now === 0 ? 'older' : 'newest'
  }
  await play({ every: '5m', until: 12_000, due, hasFailed })

  expect(heard.slice(0, 3)).toEqual(told)
})

it('leaves lists to themselves that this process reads, and to others those that these have', async () => {
  const { begun } = await play({
    every: '5m',
    until: 15_000,
    due: once(2000),
    isRunning: (name, now) => name === 'acme' && now < 12_500,
  })
  const others = await play({ every: '5m', until: 5000, due: once(0), isFree: (name) => name === 'globex' })

  expect(begun).toEqual([
    [5000, 'globex'],
    [15_000, 'acme'],
  ])
  expect(others.begun).toEqual([[0, 'globex']])
})

it('tells once that nothing can be begun, and once that it can be again, not while it asks for nothing', async () => {
  const { begun, troubles } = await play({
    every: '10s',
    until: 60_000,
    failsUntil: 35_000,
    due: (...asked) => (asked[1] >= 15_000 && asked[1] < 25_000 ? null : once(10_000)(...asked)),
  })

  const [[refreshedAt] = []] = begun
  expect(refreshedAt).toBeGreaterThanOrEqual(35_000)
  expect(troubles).toEqual([
    [10_000, new Error('no server')],
    [refreshedAt, null],
  ])
})
