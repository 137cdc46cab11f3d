import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { createReporter } from '../../../src/cli/output/reporter.ts'
import { type ErrorCode, JobError } from '../../../src/errors.ts'
import type { JobEvent, JobResult } from '../../../src/sync/job.ts'
import type { Job } from '../../../src/sync/types.ts'
import { jobOf } from '../../helpers/jobs.ts'

const MINUTE = 60_000

/** A reporter on a terminal, what it drew last, and the lines that it logged. */
function createWatched() {
  const clock = { now: 0 }
  const told: { level: string; event: string }[] = []
  const write = (line: string) => void told.push(JSON.parse(line) as (typeof told)[number])
  let drawn: readonly string[] = []
  let tick: (() => unknown) | null = null
  const reporter = createReporter({
    config: {
      rateLimit: { requestsPerMinute: null, sharePercent: 100, scope: 'token', fallbackWait: 1, maxWait: 1 },
    },
    runtime: {
      now: () => clock.now,
      every: (_, task) => {
        tick = task
        return () => {}
      },
    },
    logger: pino({ level: 'debug', formatters: { level: (level) => ({ level }) } }, { write }),
    draw: (lines) => {
      drawn = lines
    },
    budgetOf: () => 'budget',
  })
  const shown = (at = clock.now) => {
    clock.now = at
    tick?.()
    return drawn
  }
  return { clock, told, reporter, shown }
}

function named(organization: string): Job {
  const job = jobOf()
  return { ...job, organization: { ...job.organization, name: organization } }
}

/** Reads so many of 40 pages, half a second each. */
function read(
  { clock, reporter }: ReturnType<typeof createWatched>,
  organization: string,
  pages: number,
  limit: number | null = null,
) {
  const observe = reporter.observe(named(organization))
  clock.now = 0
  observe({ kind: 'request' })
  for (let number = 1; number <= pages; number++) {
    clock.now = number * 500
    const page = { number, lastPage: 40, announcedLimit: limit, items: [], next: 'x' }
    const result = { added: 0, changed: 0, notices: [] }
    observe({ kind: 'page', page, result, itemsInWalk: number * 25 } as unknown as JobEvent)
  }
  return observe
}

const NO_RUN: JobResult = {
  job: jobOf(),
  trigger: 'manual',
  walk: null,
  run: null,
  isInstead: false,
  items: 0,
  coverage: null,
  untrusted: null,
  error: null,
  heldBack: null,
}

describe('the line of a list on a terminal', () => {
  it.each<[string, pages: number, limit: number | null, JobEvent[], string]>([
    ['before its first page', 0, null, [], 'waits for its first page'],
    ['before its speed is known', 2, null, [], 'page 2 of 40, 50 rows'],
    ['then', 20, null, [], 'page 20 of 40, 500 rows, about 10 seconds left'],
    // Nine in the first minute, ten when the second begins, and the other twenty at the pace of the limit.
    ['by its limit', 1, 10, [], 'page 1 of 40, 25 rows, about 3 minutes left'],
    [
      'that waits',
      20,
      null,
      [{ kind: 'wait', reason: 'the rate limit', until: 70_000 }],
      'page 20 of 40, 500 rows, about 60 seconds left, waits 60 seconds: the rate limit',
    ],
    [
      'that another process has',
      0,
      null,
      [{ kind: 'busy', owner: 'process 7', work: null }],
      'waits for process 7',
    ],
  ])('%s', (_, pages, limit, events, line) => {
    const watched = createWatched()
    const observe = read(watched, 'acme', pages, limit)
    for (const event of events) observe(event)

    expect(watched.shown(10_000)).toEqual([`acme orders  ${line}`])
  })

  it('comes before those that have not begun, counts those that share its limit, and goes at the end', () => {
    const watched = createWatched()
    for (let index = 0; index < 60; index++) watched.reporter.observe(named(`list-${index}`))
    const observe = read(watched, 'busy', 20)

    expect(watched.shown(10_000)[0]).toMatch(/^busy orders +page 20 of 40, 500 rows$/)
    expect(watched.shown()).toHaveLength(50)
    observe({ kind: 'finish', result: NO_RUN })
    expect(watched.shown()[0]).toMatch(/^list-0 orders /)
  })
})

it.each<[ErrorCode, minutes: number[], warnings: number]>([
  ['NETWORK', [0, 1, 2, 4], 1],
  ['TIMEOUT', [0, 6, 12], 3],
  ['BAD_RESPONSE', [0], 4],
])(
  'a fault that lists have at once is told of one, and again after five minutes: %s at %j',
  (code, minutes, warnings) => {
    const { clock, told, reporter } = createWatched()
    const lists = Array.from({ length: 4 }, () => reporter.observe(jobOf()))
    for (const minute of minutes) {
      clock.now = minute * MINUTE
      for (const observe of lists) observe({ kind: 'retry', code, reason: 'away', delayMs: 1000 })
    }

    expect(told.filter(({ level }) => level === 'warn')).toHaveLength(warnings)
  },
)

const walk = {} as NonNullable<JobResult['walk']>

it.each<[string, Partial<JobResult>, ErrorCode, level: string, event: string]>([
  ['a refresh that is busy', { trigger: 'refresh' }, 'BUSY', 'debug', 'run_not_begun'],
  ['a refresh whose token is held', { trigger: 'refresh' }, 'UNAUTHORIZED', 'debug', 'run_not_begun'],
  ['a refresh', { trigger: 'refresh' }, 'DATABASE', 'error', 'run_not_begun'],
  ['a busy one of a schedule', { trigger: 'schedule' }, 'BUSY', 'info', 'run_not_begun'],
  ['one of a schedule', { trigger: 'schedule' }, 'DATABASE', 'error', 'run_not_begun'],
  ['a busy one that somebody asked for', {}, 'BUSY', 'warn', 'run_not_begun'],
  ['one that lost its mirror', { walk }, 'DATABASE', 'error', 'run_lost'],
])('how loudly a job is told that did not run: %s', (_, changed, code, level, event) => {
  const { told, reporter } = createWatched()

  const result = { ...NO_RUN, ...changed, error: new JobError(code, 'why') }
  reporter.observe(jobOf())({ kind: 'finish', result })

  expect(told).toMatchObject([{ level, event, error_code: code, error_message: 'why' }])
})
