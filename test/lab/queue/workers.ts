import { type SharedJob, startSharedScheduler } from '../../../src/schedule/shared-scheduler.ts'
import { migrate } from '../../../src/store/postgres/migrate.ts'
import { TOUCH_EVERY_MS } from '../../../src/store/postgres/queue/boss.ts'
import { type ListQueue, openQueue, type QueuedList } from '../../../src/store/postgres/queue/queue.ts'
import { queueSchema } from '../../../src/store/postgres/queue/schema.ts'
import { connectServer, type Server } from '../../../src/store/postgres/server/server.ts'
import type { TestServer } from '../../helpers/postgres-server.ts'
import { newSchema } from '../../helpers/postgres-server.ts'
import { afterRealTime } from '../../helpers/real-time.ts'
import type { VirtualClock } from '../../simulation/clock.ts'
import { createRandom } from '../../simulation/random.ts'

// Workers whose decisions and whose queue are the real ones, on a real server that takes the simulation's time for its own.

export interface PlayedList {
  organization: number
  collection: string
  token: string
  pages: number
}

/** Waits for what the server has not answered yet, so that no time passes meanwhile. */
export interface Pace {
  of<T>(answer: Promise<T>): Promise<T>
  settle(): Promise<void>
  statements(): number
}

export function createPace(): Pace {
  const pending = new Set<Promise<unknown>>()
  let count = 0
  return {
    async of(answer) {
      pending.add(answer)
      count++
      try {
        return await answer
      } finally {
        pending.delete(answer)
      }
    },
    async settle() {
      do await new Promise((resolve) => setImmediate(resolve))
      while (pending.size > 0)
    },
    statements: () => count,
  }
}

export interface WorkersOptions {
  workers: number
  lists: readonly PlayedList[]
  clock: VirtualClock
  pace: Pace
  read: (list: PlayedList) => Promise<void>
  signal: AbortSignal
}

export interface Workers {
  /** `pass` lets time pass. */
  close(pass: () => void): Promise<void>
}

export async function openWorkers(
  { url }: Pick<TestServer, 'url'>,
  { workers, lists, clock, pace, read, signal }: WorkersOptions,
): Promise<Workers> {
  const address = newSchema({ url })
  const servers = await Promise.all(Array.from({ length: workers }, () => connectServer(address, REAL_TIME)))
  const [first] = servers as [Server]
  await migrate(first)
  const errors: unknown[] = []
  const note = (error: unknown) => errors.push(error)
  const queues = await Promise.all(servers.map((server) => openQueue(server, note)))
  const setTime = await simulateTime(first)
  const jobs = lists.map((list) => jobOf(list, read))
  const byName = new Map(jobs.map((job) => [job.name, job]))
  const random = createRandom(1)
  const schedulers = queues.map((queue) =>
    startSharedScheduler(jobs, {
      queue: inSimulation(queue, pace, () => setTime(clock.now())),
      jobOf: ({ organizationId, collection }) => byName.get(`${organizationId} ${collection}`),
      touchEveryMs: TOUCH_EVERY_MS,
      now: clock.now,
      ownNow: clock.now,
      sleep: (ms) => new Promise((resolve) => clock.after(ms, resolve)),
      random: random.fork().next,
      signal,
      onOverlap: (name) => note(new Error(`${name} is waiting still`)),
      onError: (_name, error) => note(error),
      onQueueError: note,
    }),
  )
  return {
    async close(pass) {
      const ending = { isOver: false }
      const stopped = Promise.all(schedulers.map((scheduler) => scheduler.stop())).finally(() => {
        ending.isOver = true
      })
      while (!ending.isOver) {
        pass()
        await pace.settle()
      }
      await stopped
      await Promise.all(queues.map((queue) => queue.close()))
      await first.rows(`DROP SCHEMA ${address.schema}, ${queueSchema(address.schema)} CASCADE`)
      await Promise.all(servers.map((server) => server.close()))
      if (errors.length > 0) throw new AggregateError(errors, `the queue failed: ${String(errors[0])}`)
    },
  }
}

/** Of the connections alone: the queue's time is the simulation's. */
const REAL_TIME = {
  now: Date.now,
  sleep: (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms)),
  after: afterRealTime,
  signal: new AbortController().signal,
}

/** All statements of pg-boss ask one function for the time. Returns a function that sets it. */
async function simulateTime(server: Server): Promise<(time: number) => Promise<void>> {
  const queue = queueSchema(server.address.schema)
  await server.plain(`
    CREATE UNLOGGED TABLE simulated_clock (now timestamptz NOT NULL);
    INSERT INTO simulated_clock VALUES ('epoch');
    CREATE OR REPLACE FUNCTION ${queue}.job_now() RETURNS timestamptz LANGUAGE sql STABLE
      AS 'SELECT now FROM ${server.address.schema}.simulated_clock';
  `)
  let last = { time: Number.NaN, set: Promise.resolve() }
  const set = async (time: number) => {
    await server.rows('UPDATE simulated_clock SET now = $1', [new Date(time).toISOString()])
  }
  // To the second, which is exact enough for pauses of seconds, and saves most of the statements.
  return (exact) => {
    const time = Math.floor(exact / 1000) * 1000
    if (last.time !== time) last = { time, set: last.set.then(() => set(time)) }
    return last.set
  }
}

/** The real queue; no time passes while it answers. */
function inSimulation(queue: ListQueue, pace: Pick<Pace, 'of'>, setTime: () => Promise<void>): ListQueue {
  const ask = <T>(task: () => Promise<T>) => pace.of(setTime().then(task))
  return {
    tick: (...tick) => ask(() => queue.tick(...tick)),
    add: (lists) => ask(() => queue.add(lists)),
    take: (...most) => ask(() => queue.take(...most)),
    touch: (claims) => ask(() => queue.touch(claims)),
    finish: (...end) => ask(() => queue.finish(...end)),
    giveBack: (claim) => ask(() => queue.giveBack(claim)),
    rescue: (list) => ask(() => queue.rescue(list)),
    close: () => queue.close(),
  }
}

function jobOf(list: PlayedList, read: (list: PlayedList) => Promise<void>): SharedJob<QueuedList> {
  const { organization, collection, token } = list
  const organizationId = `organization-${organization}`
  return {
    name: `${organizationId} ${collection}`,
    list: { organizationId, collection, budget: token },
    budget: token,
    expression: '0 * * * *',
    timezone: 'UTC',
    dueAtStart: false,
    run: async () => {
      await read(list)
      return { again: false, errorCode: null }
    },
  }
}
