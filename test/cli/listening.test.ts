import { describe, expect, it } from 'vitest'
import { budgetText, FRESH } from '../../src/api/rate/budget.ts'
import { budgetUses, createLastHour, createSource } from '../../src/cli/listening.ts'
import type { Config } from '../../src/config/config.ts'
import { JobError, MirrorError } from '../../src/errors.ts'
import { createCounters } from '../../src/listener/metrics.ts'
import { neverSynced } from '../../src/store/core/status.ts'
import type { JobResult } from '../../src/sync/job.ts'
import { ACME } from '../helpers/jobs.ts'

const MINUTE = 60_000

function scene() {
  const clock = { now: 1_000_000 * MINUTE }
  return { clock, counts: createLastHour(() => clock.now) }
}

describe('the counts of requests', () => {
  it('of the last hour forget what is older', () => {
    const { clock, counts } = scene()

    counts.note('a', 200)
    clock.now += 30 * MINUTE
    counts.note('a', 429)
    const whole = counts.requests().get('a')
    clock.now += 30 * MINUTE
    const half = counts.requests().get('a')

    expect([whole, half]).toEqual([
      { requests: 2, throttled: 1 },
      { requests: 1, throttled: 1 },
    ])
  })

  it('of the last hour survive a clock that was set back', () => {
    const { clock, counts } = scene()
    counts.note('a', 200)

    clock.now -= 1440 * MINUTE
    counts.note('a', 200)

    expect(counts.requests().get('a')).toEqual({ requests: 1, throttled: 0 })
  })
})

const RATE = {
  requestsPerMinute: null,
  sharePercent: 100,
  scope: 'token',
  fallbackWait: 1,
  maxWait: 1,
} as const
const organizations = [
  { id: 'a', name: 'acme' },
  { id: 'b', name: 'globex' },
] as never
const lastHour = new Map([
  ['a', { requests: 10, throttled: 1 }],
  ['b', { requests: 5, throttled: 0 }],
])

function gate(scope: string, limit: number) {
  return { scope, known: budgetText({ ...FRESH, window: { limit, remaining: 1, ours: 1, endsAt: 0 } }) }
}

function usesOf(scope: 'organization' | 'all') {
  return budgetUses({
    config: { organizations, rateLimit: { ...RATE, scope } },
    gates: [],
    tokensUsed: new Map(),
    lastHour,
  })
}

describe('the use of budgets', () => {
  it('is summed over the organizations that share a token, and its fingerprint is not shown', () => {
    const uses = budgetUses({
      config: { organizations, rateLimit: RATE },
      gates: [gate('fingerprint', 60)],
      tokensUsed: new Map([
        ['a', 'fingerprint'],
        ['b', 'fingerprint'],
      ]),
      lastHour,
    })

    expect(uses).toEqual([{ organizations: ['acme', 'globex'], requests: 15, throttled: 1, per_minute: 60 }])
    expect(JSON.stringify(uses)).not.toContain('fingerprint')
  })

  it.each([
    ['our share of the announced limit', { ...RATE, sharePercent: 50 }, 30],
    ['our own ceiling, if it is lower', { ...RATE, requestsPerMinute: 20 }, 20],
    ['the announced limit, if that is lower', { ...RATE, requestsPerMinute: 300 }, 60],
  ])('is measured against %s', (_, rateLimit, expected) => {
    const [use] = budgetUses({
      config: { organizations, rateLimit },
      gates: [gate('x', 60)],
      tokensUsed: new Map([['a', 'x']]),
      lastHour,
    })

    expect(use?.per_minute).toBe(expected)
  })

  it('is of each organization, or of all, as the scope says; without a limit where none is known', () => {
    expect(usesOf('organization').map(({ requests }) => requests)).toEqual([10, 5])
    expect(usesOf('all')).toMatchObject([{ requests: 15, per_minute: null }])
  })
})

it('the listener shows commands with the configuration of its process', async () => {
  const jobs = [{ ...neverSynced(ACME, 'orders'), configured: 1 }]
  const facts = { jobs, daemons: [], pausedUntil: null, columnTroubles: [], queue: null }
  const organization = { ...ACME, collections: [{ name: 'orders' }], schedule: '0 0 1 1 *', refresh: false }
  const config = { database: 'mirror.db', organizations: [organization], timezone: 'UTC', publish: null }
  const source = createSource({
    served: {
      probe: async () => {},
      writeFault: () => null,
      overview: async () => ({
        facts,
        runs: [],
        gates: [],
        tokensUsed: new Map(),
        newColumns: [],
        size: { bytes: 0 } as never,
      }),
    },
    config: { ...config, rateLimit: RATE } as unknown as Config,
    scheduler: { isTicking: () => true },
    counters: createCounters(),
    lastHour: () => new Map(),
    configOption: ' --config /etc/a.yaml',
    now: () => 1_000_000,
  })

  const { status } = await source.overview()

  expect(status.jobs[0]?.next).toBe('admin-mirror sync --org acme --config /etc/a.yaml')
})

it('a mirror that a run could not use is unusable until a run could', async () => {
  const source = createSource({
    served: {
      probe: async () => {},
      writeFault: () => null,
      overview: () => Promise.reject(new Error('not asked')),
    },
    config: { database: 'mirror.db', organizations: [] } as unknown as Config,
    scheduler: { isTicking: () => true },
    counters: createCounters(),
    lastHour: () => new Map(),
    configOption: '',
    now: () => 1_000_000,
  })
  const isUsable = async () => (await source.health()).unusable
  const RAN = {} as NonNullable<JobResult['run']>

  source.onResult({ error: new MirrorError('the disk is full'), run: null })
  expect(await isUsable()).toBe('the disk is full')
  // It has not tried.
  source.onResult({ error: new JobError('BUSY', 'elsewhere'), run: null })
  expect(await isUsable()).toBe('the disk is full')
  source.onResult({ error: new JobError('NETWORK', 'away'), run: RAN })
  expect(await isUsable()).toBeNull()
})
