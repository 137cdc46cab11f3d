import { describe, expect, it, onTestFinished } from 'vitest'
import { MirrorLostError } from '../../../src/errors.ts'
import {
  type Claim,
  inTurns,
  openQueue,
  queueSchema,
  type WorkQueue,
} from '../../../src/store/postgres/queue.ts'
import type { PostgresAddress } from '../../../src/store/postgres/server/pool.ts'
import type { Server } from '../../../src/store/postgres/server/server.ts'
import { emptySchema } from '../../helpers/kept-schema.ts'
import { newSchema, openDatabase, openReader } from '../../helpers/postgres.ts'
import { openPostgresMirror } from '../../helpers/postgres-mirror.ts'

const server = await openDatabase()

const lists = (count: number) =>
  Array.from({ length: count }, (_one, index) => ({ key: `list ${index}`, budget: `token-${index % 3}` }))

async function openWorker(address: PostgresAddress): Promise<{ queue: WorkQueue; troubles: unknown[] }> {
  const mirror = await openPostgresMirror(address)
  const troubles: unknown[] = []
  const queue = await openQueue(mirror.server, (error) => troubles.push(error))
  onTestFinished(() => queue.close())
  return { queue, troubles }
}

/** Workers on a queue that is empty, or not made yet. */
async function scene(workers: number, isNew = false) {
  const address = isNew ? newSchema(server) : await emptySchema(server)
  const rows = await openReader(address)
  const jobs = `"${queueSchema(address.schema)}".job`
  const [found] = await rows('SELECT to_regclass($1) AS made', jobs)
  if (found?.made) await rows(`DELETE FROM ${jobs}`)
  const opened = await Promise.all(Array.from({ length: workers }, () => openWorker(address)))
  return { rows, jobs, opened, queues: opened.map(({ queue }) => queue) as [WorkQueue, ...WorkQueue[]] }
}

/** Takes the one entry of the queue, which may come only after a while. */
async function takeOne(...queues: readonly WorkQueue[]): Promise<Claim> {
  const taken: Claim[] = []
  const take = async () =>
    taken.push(...(await Promise.all(queues.map((queue) => queue.take('lists', 5)))).flat())
  await expect.poll(take, { timeout: 40_000 }).toBe(1)
  return taken[0] as Claim
}

describe.skipIf(server.missing !== null)('the queue of workers', { timeout: 60_000 }, () => {
  it('is made by any number of workers at once, and has each entry once', async () => {
    const { rows, jobs, queues } = await scene(5, true)

    await Promise.all(queues.map((queue) => queue.send('lists', lists(40))))

    expect(await rows(`SELECT count(*)::int FROM ${jobs}`)).toEqual([{ count: 40 }])
  })

  it('hands out each entry to one worker, and adds none that waits or is taken', async () => {
    const { queues } = await scene(3)
    const [first] = queues
    await first.send('lists', lists(40))
    await first.send('refreshes', [{ key: 'token', budget: 'token' }])

    const taken = (
      await Promise.all(queues.flatMap((queue) => [queue.take('lists', 8), queue.take('lists', 8)]))
    ).flat()

    expect(taken.map(({ key }) => key).toSorted()).toEqual(
      lists(40)
        .map(({ key }) => key)
        .toSorted(),
    )
    await first.send('lists', lists(40))
    expect(await first.take('lists', 8)).toEqual([])
    expect(await first.take('refreshes', 8)).toMatchObject([{ key: 'token' }])
  })

  it('hands out no list of the budgets that a worker has lists enough of', async () => {
    const { queues } = await scene(1)
    const [queue] = queues
    await queue.send('lists', lists(9))

    const taken = await queue.take('lists', 9, ['token-0', 'token-2'])
    expect(taken.map(({ key }) => key).toSorted()).toEqual(['list 1', 'list 4', 'list 7'])
    expect(await queue.take('lists', 9)).toHaveLength(6)
  })

  it('hands a list out again that was given back, and hears no more of who had it before', async () => {
    const { rows, jobs, queues } = await scene(2)
    const [first, second] = queues as [WorkQueue, WorkQueue]
    await first.send('lists', lists(1))
    const before = await takeOne(first)
    await first.giveBack('lists', before)
    const after = await takeOne(second)

    await first.finish('lists', before)
    await first.giveBack('lists', before)
    expect(await rows(`SELECT state, retry_count FROM ${jobs}`)).toEqual([
      { state: 'active', retry_count: 1 },
    ])
    await second.finish('lists', after)
    expect(await rows(`SELECT state FROM ${jobs}`)).toEqual([{ state: 'completed' }])
  })

  it('hands out what a dead worker has taken once more, though all others look for it', async () => {
    const { rows, jobs, queues } = await scene(4)
    const [dead, ...others] = queues
    await dead.send('lists', lists(1))
    const before = await takeOne(dead)
    await rows(`UPDATE ${jobs} SET heartbeat_on = now() - interval '11 seconds'`)

    expect(await takeOne(...others)).toEqual({ ...before, retryCount: 1 })
  })

  it('outlives connections that the server ends', async () => {
    const { rows, opened, queues } = await scene(2)
    const [first, second] = queues as [WorkQueue, WorkQueue]
    await first.send('lists', lists(10))
    await rows(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $$admin-mirror$$ AND datname = current_database()',
    )

    const taken = await Promise.all([first.take('lists', 8), second.take('lists', 8)])
    expect(taken.flat()).toHaveLength(10)
    expect(opened.flatMap(({ troubles }) => troubles)).toEqual([])
  })
})

it.skipIf(server.missing !== null)(
  'thousands of lists in the queue cost the server no more than a few',
  async () => {
    const mirror = await openPostgresMirror(newSchema(server))
    const rows = await openReader(mirror.address)
    const asked: { text: string; values: readonly unknown[] }[] = []
    const watched: Server = {
      ...mirror.server,
      plain(text, values = []) {
        asked.push({ text, values })
        return mirror.server.plain(text, values)
      },
    }
    const queue = await openQueue(watched, () => {})
    onTestFinished(() => queue.close())
    /** Database pages that the server goes through. */
    const pagesTouched = async () => {
      asked.length = 0
      await queue.take('lists', 8, ['token-1'])
      const { text, values } = asked.find((one) => one.text.includes('SKIP LOCKED')) ?? {
        text: '',
        values: [],
      }
      // The least of three: what the server cleans up or counts meanwhile is no part of the statement.
      const touched: number[] = []
      for (let run = 0; run < 3; run++) {
        await rows('BEGIN')
        const [explained] = await rows(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`, ...values)
        await rows('ROLLBACK')
        const [plan] = (explained?.['QUERY PLAN'] ?? []) as { Plan: Record<string, number> }[]
        touched.push((plan?.Plan['Shared Hit Blocks'] ?? 0) + (plan?.Plan['Shared Read Blocks'] ?? 0))
      }
      return Math.min(...touched)
    }
    await queue.send('lists', lists(20))
    const few = await pagesTouched()
    await queue.send('lists', lists(10_000))

    expect(few).toBeGreaterThan(0)
    expect(await pagesTouched()).toBeLessThan(few + 100)
  },
)

describe.skipIf(server.missing !== null)('the schema of the queue', { timeout: 60_000 }, () => {
  it('is refused where it is of a newer version', async () => {
    const address = newSchema(server)
    const rows = await openReader(address)
    await openWorker(address)
    await rows(`UPDATE ${queueSchema(address.schema)}.version SET version = version + 1`)

    await expect(openWorker(address)).rejects.toThrow(MirrorLostError)
  })

  it('has a name of its own for each mirror, however long', () => {
    const long = 'm'.repeat(63)
    expect(queueSchema('admin_mirror')).toBe('admin_mirror_queue')
    expect(queueSchema(long)).toHaveLength(50)
    expect(queueSchema(long)).not.toBe(queueSchema(long.slice(1)))
  })
})

it.each([
  ['', ''],
  ['a1', 'a1'],
  ['a1 a2 a3 b1 b2 c1', 'a1 b1 c1 a2 b2 a3'],
  ['a1 b1 a2 b2', 'a1 b1 a2 b2'],
])('%j waits as %j: of each budget one list after the other', (configured, expected) => {
  const all = configured.split(' ').map((name) => ({ name, budget: name.slice(0, 1) }))

  expect(
    inTurns(all)
      .map(({ name }) => name)
      .join(' '),
  ).toBe(expected)
})
