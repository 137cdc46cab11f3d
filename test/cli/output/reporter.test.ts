import type { Logger } from 'pino'
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
  const told: { level: string; event: string; msg: string }[] = []
  const listen = (level: string) => (fields: { event: string }, msg: string) =>
    told.push({ level, event: fields.event, msg })
  const logger = Object.fromEntries(['debug', 'info', 'warn', 'error'].map((level) => [level, listen(level)]))
  const terminal = { drawn: [] as readonly string[], tick: () => {} }
  const reporter = createReporter({
    config: {
      rateLimit: { requestsPerMinute: null, sharePercent: 100, scope: 'token', fallbackWait: 1, maxWait: 1 },
    },
    runtime: {
      now: () => clock.now,
      every: (_, task) => {
        terminal.tick = task
        return () => {}
      },
    },
    logger: { ...logger, child: () => logger } as unknown as Logger,
    terminal: {
      isWatched: true,
      log: process.stderr,
      draw: (lines) => {
        terminal.drawn = lines
      },
      close: () => {},
    },
    budgetOf: () => 'budget',
  })
  const shown = (at = clock.now) => {
    clock.now = at
    terminal.tick()
    return terminal.drawn
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

  it('comes before those that have not begun, at most fifty fit, and it goes at the end', () => {
    const watched = createWatched()
    for (let index = 0; index < 60; index++) watched.reporter.observe(named(`list-${index}`))
    const observe = read(watched, 'busy', 20)

    expect(watched.shown(10_000)[0]).toMatch(/^busy orders /)
    expect(watched.shown()).toHaveLength(50)
    observe({ kind: 'finish', result: NO_RUN })
    expect(watched.shown()[0]).toMatch(/^list-0 orders /)
  })

  it('counts the lists that share a limit for the time that is left', () => {
    const watched = createWatched()
    for (const organization of ['acme', 'globex'])
      read(watched, organization, 10, 10)({ kind: 'waited', ms: 299_000 })

    expect(watched.shown(300_000)[0]).toContain('about 6 minutes left')
  })
})

/** How many warnings there are about pages of four lists that fail at these minutes. */
function warningsOf(code: ErrorCode, minutes: readonly number[]): number {
  const { clock, told, reporter } = createWatched()
  const lists = Array.from({ length: 4 }, () => reporter.observe(jobOf()))
  for (const minute of minutes) {
    clock.now = minute * MINUTE
    for (const observe of lists) observe({ kind: 'retry', code, reason: 'away', delayMs: 1000 })
  }
  return told.filter(({ level }) => level === 'warn').length
}

describe('a fault that all lists have at once', () => {
  it.each<[ErrorCode, minutes: number[], warnings: number]>([
    ['NETWORK', [0], 1],
    ['NETWORK', [0, 1, 2, 4], 1],
    ['TIMEOUT', [0, 6, 12], 3],
    ['BAD_RESPONSE', [0], 4],
  ])('%s is told of one list, and again after five minutes: at %j', (code, minutes, warnings) => {
    expect(warningsOf(code, minutes)).toBe(warnings)
  })
})

describe('the line of a job that', () => {
  const walk = {} as NonNullable<JobResult['walk']>

  it.each<[string, Partial<JobResult>, ErrorCode, level: string, event: string]>([
    ['did not begin: a refresh that is busy', { trigger: 'refresh' }, 'BUSY', 'debug', 'run_not_begun'],
    [
      'did not begin: a refresh whose token is held',
      { trigger: 'refresh' },
      'UNAUTHORIZED',
      'debug',
      'run_not_begun',
    ],
    ['did not begin: a refresh', { trigger: 'refresh' }, 'DATABASE', 'error', 'run_not_begun'],
    ['did not begin: a busy one of a schedule', { trigger: 'schedule' }, 'BUSY', 'info', 'run_not_begun'],
    ['did not begin: one of a schedule', { trigger: 'schedule' }, 'DATABASE', 'error', 'run_not_begun'],
    ['did not begin: a busy one that somebody asked for', {}, 'BUSY', 'warn', 'run_not_begun'],
    ['another worker has taken over', { walk }, 'BUSY', 'info', 'run_lost'],
    ['lost its mirror', { walk }, 'DATABASE', 'error', 'run_lost'],
  ])('%s', (_, changed, code, level, event) => {
    const { told, reporter } = createWatched()

    reporter.observe(jobOf())({
      kind: 'finish',
      result: { ...NO_RUN, ...changed, error: new JobError(code, 'why') },
    })

    expect(told.map((line) => [line.level, line.event])).toEqual([[level, event]])
  })
})

it('the last line of a command has the sums of its lists, and says how many did not end well', () => {
  const { clock, told, reporter } = createWatched()
  const run = { pages: 1, rowsAdded: 10, rowsChanged: 2, rowsRemoved: 1 } as NonNullable<JobResult['run']>
  const [first, second] = [reporter.observe(jobOf()), reporter.observe(jobOf())]
  first({ kind: 'finish', result: { ...NO_RUN, run } })
  second({ kind: 'finish', result: { ...NO_RUN, run, error: new JobError('INCOMPLETE', 'short') } })
  clock.now = 13 * MINUTE

  reporter.summarize()

  expect(told.at(-1)?.msg).toBe(
    '2 lists in 13 minutes: 1 did not end well; 20 rows new, 4 changed, 2 removed',
  )
})
