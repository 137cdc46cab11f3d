import { describe, expect, it } from 'vitest'
import { type ScheduledJob, startScheduler } from '../../src/schedule/scheduler.ts'
import { createTicks } from '../../src/schedule/ticks.ts'
import { createSteppedClock, settle } from '../helpers/clock.ts'

const NOON = Date.parse('2026-11-20T12:00:00Z')
const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** Jobs whose runs end when the test says so, and what happened: `+a` a run of a, `!a` its end, `~a` a time of a while it ran. */
function createScene(expressions: Record<string, string>, due = '') {
  const clock = createSteppedClock(NOON)
  const happened: string[] = []
  const ends = new Map<string, (error?: Error) => void>()

  async function busy(name: string, sign = '+'): Promise<void> {
    happened.push(sign + name)
    await new Promise<void>((resolve, reject) => {
      ends.set(name, (error) => (error ? reject(error) : resolve()))
    })
    happened.push(`!${name}`)
  }
  const jobs = Object.entries(expressions).map(([name, expression]): ScheduledJob => ({
    name,
    expression,
    timezone: 'UTC',
    dueAtStart: due.includes(name),
    run: () => busy(name),
  }))
  const scheduler = startScheduler(
    jobs,
    {
      onOverlap: (name) => void happened.push(`~${name}`),
      onError: (name, error) => void happened.push(`${name}: ${String(error)}`),
    },
    clock,
  )
  return {
    ...clock,
    scheduler,
    /** Begins a task of a job between two runs, written as `(a`. */
    between: (name: string) => {
      const job = jobs.find((one) => one.name === name) as ScheduledJob
      void scheduler.runBetween(job, () => busy(name, '('))
    },
    async end(name: string, error?: Error) {
      ends.get(name)?.(error)
      await settle()
    },
    isRunning: (name: string) => scheduler.isRunning(jobs.find((one) => one.name === name) as ScheduledJob),
    /** What happened since it was asked last. */
    happened: () => happened.splice(0).join(' '),
  }
}

describe('a scheduler', () => {
  it('runs what is due at the start, each job at its times, and none twice at once', async () => {
    const scene = createScene({ a: '* * * * *', b: '*/20 * * * * *', c: '0 0 1 1 *' }, 'ac')

    expect(scene.happened()).toBe('+a +c')
    await scene.pass(20 * SECOND)
    expect(scene.happened()).toBe('+b')
    await scene.end('b')
    await scene.pass(40 * SECOND)
    expect(scene.happened()).toBe('!b +b ~a ~b')
    await scene.end('a')
    await scene.pass(MINUTE)
    expect(scene.happened()).toBe('!a ~b ~b +a ~b')
    expect(['a', 'b', 'c'].map(scene.isRunning)).toEqual([true, true, true])
  })

  it('reports a job that fails, and runs it the next time', async () => {
    const scene = createScene({ a: '* * * * *' }, 'a')

    await scene.end('a', new Error('a bug'))
    await scene.pass(MINUTE)

    expect(scene.happened()).toBe('+a a: Error: a bug +a')
  })

  it('does something between two runs where the job is free, and a run that fell due meanwhile after it', async () => {
    const scene = createScene({ a: '* * * * *' })

    scene.between('a')
    scene.between('a')
    await scene.pass(3 * MINUTE)
    expect(scene.happened()).toBe('(a')
    await scene.end('a')
    scene.between('a')
    expect(scene.happened()).toBe('!a +a')
    await scene.end('a')
    scene.between('a')
    await scene.end('a')
    await scene.pass(SECOND)
    expect(scene.happened()).toBe('!a (a !a')
  })

  it('stops when what is in progress has ended, and begins nothing more', async () => {
    const scene = createScene({ a: '* * * * *', b: '* * * * *' }, 'a')
    scene.between('b')
    await scene.pass(MINUTE)
    let isStopped = false
    const stopped = Promise.all([scene.scheduler.stop(), scene.scheduler.stop()]).then(() => {
      isStopped = true
    })

    scene.between('a')
    await scene.pass(MINUTE)
    await scene.end('b')
    expect([isStopped, scene.happened()]).toEqual([false, '+a (b ~a !b'])
    await scene.end('a')
    await stopped
    scene.between('a')
    await scene.pass(MINUTE)
    expect([scene.happened(), scene.sleepers()]).toEqual(['!a', 0])
  })

  it('looks at the clock each half minute, and says when it did not', async () => {
    const { scheduler, now, pass } = createScene({ a: '0 0 1 1 *' })

    await pass(5 * HOUR)

    expect([90_000, 90_001].map((late) => scheduler.isTicking(now() + late))).toEqual([true, false])
    await scheduler.stop()
  })
})

describe('the ticks of schedules', () => {
  const hourly = { expression: '0 * * * *', timezone: 'UTC' }
  const yearly = { expression: '0 0 1 1 *', timezone: 'UTC' }

  it('come once for each time and job, whenever one looks, and never before quietUntil', () => {
    const ticks = createTicks([yearly, hourly], NOON - 1000)

    const looks = [1, HOUR - 1, HOUR, HOUR + 5, 3 * HOUR + 500, 4 * HOUR - 1, 4 * HOUR]
    expect(looks.map((after) => ticks.come(NOON + after).length)).toEqual([1, 0, 1, 0, 1, 0, 1])
    expect(ticks.quietUntil()).toBe(NOON + 5 * HOUR)
    expect(ticks.come(Date.UTC(2027, 0, 1))).toEqual([yearly, hourly])
  })

  it('come again after the clock was set back, but not where it is corrected by seconds', () => {
    const ticks = createTicks([hourly], NOON)
    ticks.come(NOON + HOUR)

    const looks = [HOUR - 3000, HOUR, 0, HOUR, HOUR - DAY, 2 * HOUR - DAY]
    expect(looks.map((after) => ticks.come(NOON + after).length)).toEqual([0, 0, 0, 1, 0, 1])
  })
})
