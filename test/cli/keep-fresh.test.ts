import { expect, it } from 'vitest'
import { keepFresh } from '../../src/cli/refresh/keep-fresh.ts'
import { selectJobs } from '../../src/cli/selection.ts'
import { loadConfig } from '../../src/config/config.ts'
import { createWorkspace, organization } from './workspace.ts'

/** Milliseconds between the first walk of a list and its first refresh. */
async function firstRefreshAfter(every: string, walkedAt: number): Promise<number> {
  const workspace = createWorkspace({
    baseUrl: 'http://127.0.0.1:9',
    organizations: [organization('acme', 1)],
    refresh: { every, share: 100 },
  })
  const file = workspace.file('admin-mirror.yaml')
  const config = loadConfig(file, { env: {}, tokens: 'leave', isCron: () => null, nameEnds: [] })
  const [selected] = selectJobs(config, { org: [], collection: [] })
  const refresh = selected?.organization.refresh
  if (!selected || !refresh) throw new Error('no list to refresh')
  let now = 0
  const stop = new AbortController()
  const refreshedAt: number[] = []

  await keepFresh({
    jobs: [
      {
        selected,
        scheduled: {
          name: 'acme orders',
          expression: '',
          timezone: 'UTC',
          dueAtStart: false,
          run: async () => {},
        },
        refresh: async () => {},
      },
    ],
    // What the mirror says: nothing before the end of the walk.
    plan: {
      update: async () => {},
      nextAt: () => (now < walkedAt ? null : walkedAt + refresh.every),
      useOf: () => ({ budget: 'acme', needs: 0 }),
    },
    scheduler: {
      runBetween: () => {
        refreshedAt.push(now)
        stop.abort()
      },
    },
    runtime: {
      now: () => now,
      sleep: async (ms) => {
        now += ms
      },
    },
    signal: stop.signal,
  })
  return (refreshedAt[0] ?? Number.NaN) - walkedAt
}

it.each([
  ['1s', 1000, 1000],
  ['5s', 5000, 5000],
  ['5m', 300_000, 30_000],
])(
  'a list refreshed every %s is refreshed so long after its first walk, and at most %i + %i ms',
  async (every, due, late) => {
    const after = await firstRefreshAfter(every, 700)

    expect(after).toBeGreaterThanOrEqual(due)
    expect(after).toBeLessThanOrEqual(due + late)
  },
)
