import { pino } from 'pino'
import { expect, it } from 'vitest'
import { createProgress } from '../../src/cli/output/progress.ts'
import { createReporter } from '../../src/cli/output/reporter.ts'
import { type ErrorCode, JobError, TokenRefusedError } from '../../src/errors.ts'
import type { JobEvent, JobResult } from '../../src/sync/job.ts'
import { jobOf } from '../helpers/jobs.ts'
import { items, pageOf } from '../helpers/list-server.ts'
import { createScene } from '../helpers/scene.ts'

// What is told of jobs on standard error. Tokens are looked for in the output of every command (test/helpers/workspace.ts).

it('each line of the log names its event, the last one the run and the walk; a failure is told once, and no value of a filter', async () => {
  let failures = 1
  const { workspace, api } = await createScene({
    settings: { collections: { orders: { filters: { email: 'mr@secret.example' } }, establishments: false } },
    instead: (asked) =>
      asked.page === 2 && failures-- > 0 ? { status: 500, body: {} } : pageOf(items(8), asked),
  })
  const sync = () => workspace.run(['sync', '--log-level', 'trace'])
  const { code, logs, stderr } = await sync()
  api.instead = () => ({ status: 404, body: {} })
  const failed = await sync()

  expect(code).toBe(0)
  expect(logs.filter(({ event }) => typeof event !== 'string')).toEqual([])
  expect(logs.filter(({ event }) => event === 'request_retried')).toMatchObject([
    { level: 'warn', error_code: 'SERVER_ERROR' },
  ])
  const [run] = workspace.rows('SELECT id AS run_id, walk_id, pages, rows_added FROM sync_runs')
  expect(logs.find(({ event }) => event === 'run_finished')).toMatchObject(run ?? {})
  expect(stderr).not.toMatch(/mr@secret|mr%40secret|Bearer|authorization/i)
  expect(failed.logs.filter((line) => JSON.stringify(line).includes('not found (404)'))).toMatchObject([
    { level: 'error', event: 'run_finished', error_code: 'ORGANIZATION_NOT_FOUND', msg: 'run failed' },
  ])
})

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

/** All that was drawn on a terminal, by a clock that stands still, and what draws it again. */
function createDrawn() {
  const clock = { now: 0 }
  const drawn: (readonly string[])[] = []
  const ticks: (() => unknown)[] = []
  const every = (_ms: number, task: () => unknown) => {
    ticks.push(task)
    return () => {}
  }
  const draw = (lines: readonly string[]) => void drawn.push(lines)
  const runtime = { now: () => clock.now, every }
  const { observe: observer } = createProgress({ draw, runtime })
  return { clock, drawn, ticks, observer }
}

function pageRead(number: number): JobEvent {
  const page = { number, lastPage: 40, items: [], next: 'x' }
  const result = { added: 0, changed: 0, notices: [] }
  return { kind: 'page', page, result, itemsInWalk: number * 25 } as unknown as JobEvent
}

it.each<[string, pages: number, JobEvent[], string]>([
  ['before its first page', 0, [], 'waits for its first page'],
  ['that is read', 10, [], 'page 10 of 40, 250 rows, about 3 minutes left'],
  [
    'that waits',
    20,
    [{ kind: 'wait', reason: 'the rate limit', until: 180_000 }],
    'page 20 of 40, 500 rows, about 2 minutes left, waits 2 minutes: the rate limit',
  ],
  ['that another process has', 0, [{ kind: 'busy', owner: 'process 7' }], 'waits for process 7'],
])('the line of a list on a terminal: one %s', (_, pages, events, line) => {
  const { clock, drawn, ticks, observer } = createDrawn()
  const observe = observer(jobOf())
  observe({ kind: 'request' })
  for (let number = 1; number <= pages; number++) {
    clock.now = number * 3000
    observe(pageRead(number))
  }
  for (const event of events) observe(event)

  clock.now = 60_000
  ticks[0]?.()
  expect(drawn.at(-1)).toEqual([`acme orders  ${line}`])
  observe({ kind: 'finish', result: NO_RUN })
  expect(drawn.at(-1)).toEqual([])
})

it('no more lists are drawn than a terminal shows, those that move before others', () => {
  const { drawn, observer } = createDrawn()
  const lists = Array.from({ length: 60 }, () => observer(jobOf()))
  lists[59]?.(pageRead(7))
  observer(jobOf())

  expect(drawn.at(-1)).toHaveLength(50)
  expect(drawn.at(-1)?.[0]).toContain('page 7 of 40')
})

/** A reporter, the clock that it looks at, and the lines that it logged. */
function createLogged() {
  const clock = { now: 0 }
  const told: { level: string; event: string }[] = []
  const write = (line: string) => void told.push(JSON.parse(line) as (typeof told)[number])
  const logger = pino({ level: 'debug', formatters: { level: (level) => ({ level }) } }, { write })
  return { clock, told, reporter: createReporter({ now: () => clock.now, logger }) }
}

it.each<[ErrorCode, minutes: number[], warnings: number]>([
  ['NETWORK', [0, 1, 2, 4], 1],
  ['TIMEOUT', [0, 6, 12], 3],
  ['BAD_RESPONSE', [0], 4],
])(
  'a fault that lists have at once is told of one, and again after five minutes: %s at %j',
  (code, minutes, warnings) => {
    const { clock, told, reporter } = createLogged()
    const lists = Array.from({ length: 4 }, () => reporter.observe(jobOf()))
    for (const minute of minutes) {
      clock.now = minute * 60_000
      for (const observe of lists) {
        observe({ kind: 'retry', code, reason: 'away', delayMs: 1000 })
        observe({ kind: 'finish', result: { ...NO_RUN, error: new JobError(code, 'away') } })
      }
    }

    for (const loud of ['warn', 'error'])
      expect(told.filter(({ level }) => level === loud)).toHaveLength(warnings)
  },
)

it('a wait that lists share is told of one, and again after five minutes', () => {
  const { clock, told, reporter } = createLogged()
  for (const minute of [0, 1, 6]) {
    clock.now = minute * 60_000
    for (const reason of ['one limit', 'one limit', 'another'])
      reporter.observe(jobOf())({ kind: 'wait', reason, until: clock.now + 50_000 })
  }
  reporter.observe(jobOf())({ kind: 'wait', reason: 'one limit', until: clock.now + 900_000 })

  const levels = ['info', 'debug', 'info']
  expect(told.map(({ level }) => level)).toEqual([...levels, 'debug', 'debug', 'debug', ...levels, 'info'])
})

it('a wait beyond maxWait is told once of each budget', () => {
  const { told, reporter } = createLogged()
  for (const opensAt of ['1000', '1000', '5400']) {
    const error = new JobError('RATE_LIMITED', 'nothing is sent before it opens', opensAt)
    reporter.observe(jobOf())({ kind: 'finish', result: { ...NO_RUN, error } })
  }

  expect(told.map(({ level }) => level)).toEqual(['error', 'debug', 'error'])
})

const walk = { id: 1, nextPage: 2 } as NonNullable<JobResult['walk']>

it.each<[string, Partial<JobResult>, ErrorCode, level: string, event: string]>([
  ['a busy one', {}, 'BUSY', 'warn', 'run_not_begun'],
  ['one that lost its mirror', { walk }, 'DATABASE', 'error', 'run_finished'],
])('how loudly a job is told that did not run: %s', (_, changed, code, level, event) => {
  const { told, reporter } = createLogged()

  const result = { ...NO_RUN, ...changed, error: new JobError(code, 'why') }
  reporter.observe(jobOf())({ kind: 'finish', result })

  expect(told).toMatchObject([{ level, event, error_code: code, error_message: 'why' }])
})

it.each<[string, isAsked: boolean, rowsAdded: number, rowsChanged: number, ErrorCode | null, level: string]>([
  ['that is due and finds nothing', false, 0, 0, null, 'debug'],
  ['that finds nothing, but was asked for', true, 0, 0, null, 'info'],
  ['that finds new rows', false, 1, 0, null, 'info'],
  ['that finds changes', false, 0, 2, null, 'info'],
  ['that finds one of each', false, 1, 1, null, 'info'],
  ['that fails', false, 0, 0, 'NETWORK', 'error'],
])('how loudly a refresh is told: one %s', (_, isAsked, rowsAdded, rowsChanged, code, level) => {
  const { told, reporter } = createLogged()
  const run = { pages: 2, rowsAdded, rowsChanged }
  const state = { freshAsOf: 60_000, newest: 'first' }
  const error = code && new JobError(code, 'why')

  const result = { runId: 7, tookMs: 40, run, state, isAsked, error }
  reporter.observe(jobOf())({ kind: 'refresh', result } as unknown as JobEvent)

  const ends = { fresh_as_of: '1970-01-01T00:01:00.000Z', newest: 'first' }
  expect(told).toMatchObject([{ level, event: 'refresh_finished', run_id: 7, duration_ms: 40, ...ends }])
})

it('a token that is held is told once, whichever of its lists meet that, and another one as well', () => {
  const { told, reporter } = createLogged()

  for (const [name, trigger] of [
    ['acme', 'refresh'],
    ['acme', 'schedule'],
    ['acme', 'schedule'],
    ['globex', 'schedule'],
  ] as const) {
    const error = new TokenRefusedError('the token was refused (401)', `admin-mirror resume --org ${name}`)
    reporter.observe(jobOf())({ kind: 'finish', result: { ...NO_RUN, trigger, error } })
  }

  expect(told.map(({ level }) => level)).toEqual(['debug', 'error', 'debug', 'error'])
})
