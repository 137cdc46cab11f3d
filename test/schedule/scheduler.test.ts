import { EventEmitter, once } from 'node:events'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import {
  type ScheduledJob,
  type SchedulerEvents,
  startScheduler,
  type Timing,
} from '../../src/schedule/scheduler.ts'
import { createTimeline } from './timeline.ts'

const EVERY_SECOND = '* * * * * *'
const NEW_YEAR = '0 0 1 1 *'

/** As of the program. */
const TIMING: Timing = { now: Date.now, sleep: (ms, signal) => sleep(ms, undefined, { signal }) }

/** A job whose runs end when the test calls `end`, and which counts how many run at once. */
function createJob(name: string, expression: string, dueAtStart: boolean) {
  const begun = new EventEmitter()
  const ends: (() => void)[] = []
  let atOnce = 0
  const record = { runs: 0, mostAtOnce: 0 }
  const job: ScheduledJob = {
    name,
    expression,
    timezone: 'UTC',
    dueAtStart,
    async run() {
      record.runs++
      record.mostAtOnce = Math.max(record.mostAtOnce, ++atOnce)
      begun.emit('run')
      await new Promise<void>((resolve) => ends.push(resolve))
      atOnce--
    },
  }
  return {
    job,
    record,
    nextRun: () => once(begun, 'run'),
    end() {
      for (const resolve of ends.splice(0)) resolve()
    },
  }
}

function createEvents() {
  const emitter = new EventEmitter()
  const overlaps: string[] = []
  const errors: [string, unknown][] = []
  const events: SchedulerEvents = {
    onOverlap(name) {
      overlaps.push(name)
      emitter.emit('overlap')
    },
    onError(name, error) {
      errors.push([name, error])
      emitter.emit('error-reported')
    },
  }
  return {
    events,
    overlaps,
    errors,
    nextOverlap: () => once(emitter, 'overlap'),
    nextError: () => once(emitter, 'error-reported'),
  }
}

/** Whether a promise is settled after a turn of the event loop. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false
  void promise.finally(() => {
    settled = true
  })
  await setImmediate()
  return settled
}

describe('the start', () => {
  it('runs all due jobs at once, side by side, and leaves the others for their time', async () => {
    const [first, second, later] = [
      createJob('first', NEW_YEAR, true),
      createJob('second', NEW_YEAR, true),
      createJob('later', NEW_YEAR, false),
    ]

    const scheduler = startScheduler([first.job, second.job, later.job], createEvents().events, TIMING)

    expect([first.record.runs, second.record.runs, later.record.runs]).toEqual([1, 1, 0])
    first.end()
    second.end()
    await scheduler.stop()
  })

  it('has nothing to do without jobs', async () => {
    const scheduler = startScheduler([], createEvents().events, TIMING)

    await expect(scheduler.stop()).resolves.toBeUndefined()
  })
})

describe('a job whose time comes', () => {
  it('runs each time', async () => {
    const { job, record, nextRun, end } = createJob('orders', EVERY_SECOND, false)
    const { events, overlaps } = createEvents()
    const scheduler = startScheduler([job], events, TIMING)

    await nextRun()
    end()
    await setImmediate()
    await nextRun()
    end()
    await scheduler.stop()

    expect(record).toEqual({ runs: 2, mostAtOnce: 1 })
    expect(overlaps).toEqual([])
  })

  it('runs with all jobs of its schedule, and not with others', async () => {
    const twins = [createJob('orders', EVERY_SECOND, false), createJob('establishments', EVERY_SECOND, false)]
    const other = createJob('yearly', NEW_YEAR, false)
    const runs = Promise.all(twins.map(({ nextRun }) => nextRun()))
    const scheduler = startScheduler(
      [...twins, other].map(({ job }) => job),
      createEvents().events,
      TIMING,
    )

    await runs

    expect([...twins, other].map(({ record }) => record.runs)).toEqual([1, 1, 0])
    for (const { end } of twins) end()
    await scheduler.stop()
  })

  it('is skipped and reported while it still runs, and runs again afterwards', async () => {
    const { job, record, nextRun, end } = createJob('orders', EVERY_SECOND, true)
    const { events, overlaps, nextOverlap } = createEvents()
    const scheduler = startScheduler([job], events, TIMING)

    await nextOverlap()
    await nextOverlap()
    const skipped = { ...record }
    end()
    await nextRun()
    end()
    await scheduler.stop()

    expect(skipped).toEqual({ runs: 1, mostAtOnce: 1 })
    expect(record).toEqual({ runs: 2, mostAtOnce: 1 })
    expect(overlaps).toEqual(['orders', 'orders'])
  })

  it('runs although another one still runs', async () => {
    const slow = createJob('slow', NEW_YEAR, true)
    const quick = createJob('quick', EVERY_SECOND, false)
    const { events, overlaps } = createEvents()
    const scheduler = startScheduler([slow.job, quick.job], events, TIMING)

    await quick.nextRun()

    expect(overlaps).toEqual([])
    slow.end()
    quick.end()
    await scheduler.stop()
  })

  it.each([
    ['rejects', () => Promise.reject(new Error('a bug'))],
    [
      'throws',
      () => {
        throw new Error('a bug')
      },
    ],
  ])('is reported when it %s, and runs the next time', async (_, run) => {
    const { events, errors, nextError } = createEvents()
    const job = { name: 'orders', expression: EVERY_SECOND, timezone: 'UTC', dueAtStart: false, run }
    const scheduler = startScheduler([job], events, TIMING)

    await nextError()
    await nextError()
    await scheduler.stop()

    expect(errors).toEqual([
      ['orders', new Error('a bug')],
      ['orders', new Error('a bug')],
    ])
  })
})

describe('stopping', () => {
  it('waits for the runs in progress and begins no other', async () => {
    const witness = createJob('witness', EVERY_SECOND, false)
    const { job, record, end } = createJob('orders', EVERY_SECOND, true)
    const { events, overlaps } = createEvents()
    const scheduler = startScheduler([job], events, TIMING)
    const other = startScheduler([witness.job], events, TIMING)

    const stopped = scheduler.stop()
    // The timer of the stopped one was set earlier, so it would have fired by now.
    await witness.nextRun()

    expect(await isSettled(stopped)).toBe(false)
    end()
    await stopped
    witness.end()
    await other.stop()
    expect(record.runs).toBe(1)
    expect(overlaps).toEqual([])
  })

  it('can be repeated, during and after', async () => {
    const { job, end } = createJob('orders', NEW_YEAR, true)
    const scheduler = startScheduler([job], createEvents().events, TIMING)

    const calls = [scheduler.stop(), scheduler.stop()]

    expect(await isSettled(Promise.race(calls))).toBe(false)
    end()
    await Promise.all(calls)
    await expect(scheduler.stop()).resolves.toBeUndefined()
  })
})

describe('a scheduler', () => {
  it('ticks as long as it looks in time, also for a job of once a year', async () => {
    const timeline = createTimeline(Date.parse('2026-11-20T08:01:00Z'))
    const scheduler = startScheduler(
      [createJob('orders', NEW_YEAR, false).job],
      createEvents().events,
      timeline,
    )
    const ticks: boolean[] = []

    for (let hour = 0; hour < 5; hour++) {
      await timeline.pass(3_600_000)
      ticks.push(scheduler.isTicking(timeline.now()))
    }
    await scheduler.stop()

    expect(ticks).toEqual([true, true, true, true, true])
  })

  it('does not tick when a look is more than a minute late', async () => {
    const timeline = createTimeline(Date.parse('2026-11-20T08:01:00Z'))
    const scheduler = startScheduler(
      [createJob('orders', NEW_YEAR, false).job],
      createEvents().events,
      timeline,
    )

    // It looks each half minute; no timer runs meanwhile.
    const due = timeline.now() + 30_000
    const ticks = [due - 1, due + 59_000, due + 61_000].map((time) => scheduler.isTicking(time))
    await scheduler.stop()

    expect(ticks).toEqual([true, true, false])
  })

  it('without jobs has nothing to be late for', () => {
    const { now, ...others } = createTimeline(0)
    const scheduler = startScheduler([], createEvents().events, { now, ...others })

    expect(scheduler.isTicking(now() + 3_600_000)).toBe(true)
  })
})

describe('a task between two runs', () => {
  it('is followed by no run of the job whose time came meanwhile, once the scheduler stops', async () => {
    const { job, record } = createJob('acme', EVERY_SECOND, false)
    const timeline = createTimeline(0)
    const scheduler = startScheduler([job], createEvents().events, timeline)
    const { promise, resolve: endTask } = Promise.withResolvers<void>()
    scheduler.runBetween(job, () => promise)
    await timeline.pass(2000)

    const stopped = scheduler.stop()
    endTask()
    await stopped

    expect(record.runs).toBe(0)
    scheduler.runBetween(job, () => Promise.reject(new Error('a task began after the stop')))
    expect(scheduler.isRunning(job)).toBe(false)
  })
})
