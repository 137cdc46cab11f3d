import { setImmediate } from 'node:timers/promises'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { isCron, nextFireAfter } from '../../src/schedule/cron.ts'
import { type ScheduledJob, type Scheduler, startScheduler } from '../../src/schedule/scheduler.ts'
import { createSteppedClock } from '../api/helpers/clock.ts'
import { LONG } from '../helpers/long.ts'
import { anyExpression, anyMoment, anyZone } from './schedules.ts'

const START = Date.parse('2026-11-20T08:00:00Z')
const NEW_YEAR = '0 0 1 1 *'

/** Two jobs share a schedule, and the last one's time does not come in these histories. */
const SCHEDULES: { name: string; expression: string; everyMs: number }[] = [
  { name: 'orders', expression: '*/20 * * * * *', everyMs: 20_000 },
  { name: 'establishments', expression: '*/20 * * * * *', everyMs: 20_000 },
  { name: 'customers', expression: '* * * * *', everyMs: 60_000 },
  { name: 'yearly', expression: NEW_YEAR, everyMs: Number.POSITIVE_INFINITY },
]

/** What is promised of one job: one thing at a time, and no run once the scheduler stops. */
interface JobModel {
  doing: 'nothing' | 'run' | 'task'
  runs: number
  overlaps: number
  errors: number
  runsNext: boolean
}

type End = (fails: boolean) => void

const NOT_BEGUN: End = () => {}

interface Model {
  time: number
  isStopped: boolean
  jobs: JobModel[]
}

/** The scheduler, and what its jobs did. What a job does ends when the test says so. */
interface Real {
  scheduler: Scheduler
  timeline: ReturnType<typeof createSteppedClock>
  jobs: ScheduledJob[]
  seen: { atOnce: number; runs: number; overlaps: number; errors: number; end: End }[]
  stop: { promise: Promise<void>; isSettled: boolean } | null
}

function begin(dueAtStart: readonly boolean[]): { model: Model; real: Real } {
  const timeline = createSteppedClock(START)
  const seen = SCHEDULES.map(() => ({ atOnce: 0, runs: 0, overlaps: 0, errors: 0, end: NOT_BEGUN }))
  const at = (name: string) => {
    const one = seen[SCHEDULES.findIndex((schedule) => schedule.name === name)]
    if (!one) throw new Error(`no job is called ${name}`)
    return one
  }
  const jobs = SCHEDULES.map(({ name, expression }, index) => ({
    name,
    expression,
    timezone: 'UTC',
    dueAtStart: dueAtStart[index] === true,
    run() {
      at(name).runs++
      return busy(at(name))
    },
  }))
  const events = {
    onOverlap: (name: string) => void at(name).overlaps++,
    onError: (name: string) => void at(name).errors++,
  }
  const scheduler = startScheduler(jobs, events, timeline)
  const isDue = (index: number) => dueAtStart[index] === true
  const models = SCHEDULES.map(
    (_, index): JobModel => ({
      doing: isDue(index) ? 'run' : 'nothing',
      runs: isDue(index) ? 1 : 0,
      overlaps: 0,
      errors: 0,
      runsNext: false,
    }),
  )
  return {
    model: { time: START, isStopped: false, jobs: models },
    real: { scheduler, timeline, jobs, seen, stop: null },
  }
}

async function busy(one: Real['seen'][number]): Promise<void> {
  one.atOnce++
  const ended = Promise.withResolvers<void>()
  one.end = (fails) => (fails ? ended.reject(new Error('a bug')) : ended.resolve())
  await ended.promise.finally(() => one.atOnce--)
}

function mistaken(): never {
  throw new Error('a bug')
}

/** The time of a job comes. */
function fire(job: JobModel): void {
  if (job.doing === 'run') job.overlaps++
  else if (job.doing === 'task') job.runsNext = true
  else Object.assign(job, { doing: 'run', runs: job.runs + 1 })
}

type Deed = fc.AsyncCommand<Model, Real>

/** Does something to the model and to the scheduler, and compares them. */
function deed(
  name: string,
  may: (model: Model) => boolean,
  run: (model: Model, real: Real) => Promise<void> | void,
): Deed {
  return {
    toString: () => name,
    check: may,
    async run(model, real) {
      await run(model, real)
      await setImmediate()
      const { scheduler, seen, jobs, timeline, stop } = real
      expect(seen.map(({ runs, overlaps, errors, atOnce }) => ({ runs, overlaps, errors, atOnce }))).toEqual(
        model.jobs.map(({ doing, runs, overlaps, errors }) => ({
          runs,
          overlaps,
          errors,
          atOnce: doing === 'nothing' ? 0 : 1,
        })),
      )
      expect(jobs.map(scheduler.isRunning)).toEqual(model.jobs.map(({ doing }) => doing !== 'nothing'))
      if (stop) expect(stop.isSettled).toBe(model.jobs.every(({ doing }) => doing === 'nothing'))
      else expect(scheduler.isTicking(timeline.now())).toBe(true)
    },
  }
}

function pass(ms: number): Deed {
  return deed(
    `pass ${ms} ms`,
    () => true,
    async (model, { timeline }) => {
      for (let second = 1000; second <= ms; second += 1000)
        for (const [index, { everyMs }] of SCHEDULES.entries()) {
          const job = model.jobs[index]
          if (job && !model.isStopped && (model.time + second - START) % everyMs === 0) fire(job)
        }
      model.time += ms
      await timeline.pass(ms)
    },
  )
}

function end(index: number, fails: boolean): Deed {
  return deed(
    `${fails ? 'fail' : 'end'} ${index}`,
    ({ jobs }) => jobs[index]?.doing !== 'nothing',
    ({ jobs, isStopped }, { seen }) => {
      const job = jobs[index]
      if (!job) return
      const { runsNext } = job
      Object.assign(job, { doing: 'nothing', runsNext: false, errors: job.errors + Number(fails) })
      if (runsNext && !isStopped) fire(job)
      seen[index]?.end(fails)
    },
  )
}

function between(index: number): Deed {
  return deed(
    `task of ${index}`,
    () => true,
    ({ jobs, isStopped }, real) => {
      const [model, job, one] = [jobs[index], real.jobs[index], real.seen[index]]
      if (!model || !job || !one) return
      if (model.doing === 'nothing' && !isStopped) model.doing = 'task'
      real.scheduler.runBetween(job, () => busy(one))
    },
  )
}

function stopping(): Deed {
  return deed(
    'stop',
    () => true,
    (model, real) => {
      model.isStopped = true
      const promise = real.scheduler.stop()
      if (real.stop) expect(promise).toBe(real.stop.promise)
      const state = { promise, isSettled: false }
      real.stop ??= state
      void promise.finally(() => {
        state.isSettled = true
      })
    },
  )
}

describe('a scheduler', () => {
  it('runs each job at its times, one run at once, whatever ends, fails, comes between or stops', async () => {
    const index = fc.nat(SCHEDULES.length - 1)
    const deeds = fc.commands(
      [
        fc.integer({ min: 1, max: 75 }).map((seconds) => pass(seconds * 1000)),
        fc.tuple(index, fc.boolean()).map(([which, fails]) => end(which, fails)),
        index.map(between),
        fc.constant(stopping()),
      ],
      { maxCommands: 40, size: 'max' },
    )
    const due = fc.array(fc.boolean(), { minLength: SCHEDULES.length, maxLength: SCHEDULES.length })
    await fc.assert(
      fc.asyncProperty(due, deeds, async (dueAtStart, all) => {
        const scene = begin(dueAtStart)
        await fc.asyncModelRun(() => scene, all)
        for (const { end: finish } of scene.real.seen) finish(false)
        await scene.real.scheduler.stop()
        expect(scene.real.timeline.sleepers()).toBe(0)
      }),
      { numRuns: 100 },
    )
  })

  it('reports a job that throws, and runs it the next time', async () => {
    const errors: [string, unknown][] = []
    const timeline = createSteppedClock(START)
    const job = {
      name: 'orders',
      expression: '* * * * * *',
      timezone: 'UTC',
      dueAtStart: false,
      run: mistaken,
    }
    const events = { onOverlap: () => {}, onError: (...error: [string, unknown]) => void errors.push(error) }
    const scheduler = startScheduler([job], events, timeline)

    await timeline.pass(2000)
    await scheduler.stop()

    expect(errors).toEqual([
      ['orders', new Error('a bug')],
      ['orders', new Error('a bug')],
    ])
  })

  it('looks each half minute, also for a job of once a year', async () => {
    const timeline = createSteppedClock(START)
    const job = { name: 'orders', expression: NEW_YEAR, timezone: 'UTC', dueAtStart: false }
    const events = { onOverlap: () => {}, onError: () => {} }
    const scheduler = startScheduler([{ ...job, run: async () => {} }], events, timeline)

    await timeline.pass(5 * 3_600_000)
    expect(scheduler.isTicking(timeline.now() + 90_000)).toBe(true)
    expect(scheduler.isTicking(timeline.now() + 90_001)).toBe(false)
    await scheduler.stop()
  })

  it('is never late where it has nothing to look for', () => {
    const timeline = createSteppedClock(START)
    const scheduler = startScheduler([], { onOverlap: () => {}, onError: () => {} }, timeline)

    expect(scheduler.isTicking(timeline.now() + 3_600_000)).toBe(true)
  })
})

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** A scheduler with one job whose runs take no time, and when they began. */
function createScene(expression: string, timezone: string, start: number) {
  const timeline = createSteppedClock(start)
  const times: string[] = []
  const run = async () => {
    times.push(new Date(timeline.now()).toISOString())
  }
  const job = { name: 'orders', expression, timezone, dueAtStart: false, run }
  const scheduler = startScheduler([job], { onOverlap() {}, onError() {} }, timeline)
  return { timeline, times, scheduler }
}

/** When a schedule fires within `length` milliseconds. */
async function firesOf(
  expression: string,
  timezone: string,
  start: number,
  length: number,
): Promise<string[]> {
  const { timeline, times, scheduler } = createScene(expression, timezone, start)
  await timeline.pass(length)
  await scheduler.stop()
  return times
}

function expectedFires(expression: string, timezone: string, start: number, length: number): string[] {
  const times: string[] = []
  let time = nextFireAfter(expression, timezone, start, start + length)
  while (time !== null) {
    times.push(new Date(time).toISOString())
    time = nextFireAfter(expression, timezone, time, start + length)
  }
  return times
}

describe('a schedule fires', () => {
  it('at the times that nextFireAfter returns, whatever the schedule', async () => {
    await fc.assert(
      fc.asyncProperty(anyExpression(false), anyZone(), anyMoment(), async (expression, timezone, start) => {
        fc.pre(isCron(expression))

        const times = await firesOf(expression, timezone, start, 4 * HOUR)

        expect(times).toEqual(expectedFires(expression, timezone, start, 4 * HOUR))
      }),
      { numRuns: LONG ? 100 : 15 },
    )
  })
})

describe('what the machine slept through', () => {
  const start = Date.parse('2026-11-20T01:00:30Z')

  it.each([
    ['* * * * *', '2026-11-20T08:00:10Z', 21],
    ['0 * * * *', '2026-11-20T08:00:10Z', 1],
    ['0 3 * * *', '2026-11-20T08:20:10Z', 1],
    ['0 9 * * *', '2026-11-20T08:20:10Z', 0],
    ['1 1 * * *', '2026-11-20T01:01:45Z', 1],
  ])('fires once, not in a burst: %s until %s', async (expression, time, expected) => {
    const { timeline, times, scheduler } = createScene(expression, 'UTC', start)

    timeline.set(Date.parse(time) - start)
    await timeline.pass(20 * MINUTE)
    await scheduler.stop()

    expect(new Set(times).size).toBe(times.length)
    expect(times).toHaveLength(expected)
  })
})

it('a clock that is set back by a day does not silence a schedule', async () => {
  const { timeline, times, scheduler } = createScene('0 * * * *', 'UTC', Date.parse('2026-11-20T08:30:00Z'))

  await timeline.pass(HOUR)
  timeline.set(-24 * HOUR)
  await timeline.pass(2 * HOUR)
  await scheduler.stop()

  expect(times).toEqual(['2026-11-20T09:00:00.000Z', '2026-11-19T10:00:00.000Z', '2026-11-19T11:00:00.000Z'])
})
