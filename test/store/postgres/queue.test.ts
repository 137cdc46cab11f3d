import { describe, expect, it, onTestFinished } from 'vitest'
import { MirrorLostError } from '../../../src/errors.ts'
import type { Leases } from '../../../src/store/core/leases.ts'
import { runRule } from '../../../src/store/postgres/driver.ts'
import {
  inTurns,
  type ListNames,
  type ListQueue,
  listsOfTheDead,
  openQueue,
  type QueuedList,
} from '../../../src/store/postgres/queue/queue.ts'
import { queueSchema } from '../../../src/store/postgres/queue/schema.ts'
import type { PostgresAddress } from '../../../src/store/postgres/server/pool.ts'
import type { Server } from '../../../src/store/postgres/server/server.ts'
import { emptySchema } from '../../helpers/kept-schema.ts'
import { newSchema, openDatabase, openReader } from '../../helpers/postgres.ts'
import { openPostgresMirror } from '../../helpers/postgres-mirror.ts'

const server = await openDatabase()

const NOON = Date.UTC(2026, 0, 1, 12)
const HOURLY = 'UTC 0 * * * *'

function lists(count: number): QueuedList[] {
  return Array.from({ length: count }, (_one, index) => ({
    organizationId: `organization-${index}`,
    collection: 'orders',
    budget: `token-${index % 3}`,
  }))
}

interface Worker {
  queue: ListQueue
  server: Server
  leases: Leases
  troubles: unknown[]
  /** Its server is no longer waited for. */
  stop(): void
}

async function openWorker(address: PostgresAddress): Promise<Worker> {
  const mirror = await openPostgresMirror(address)
  const troubles: unknown[] = []
  const queue = await openQueue(mirror.server, (error) => troubles.push(error))
  onTestFinished(() => queue.close())
  return { queue, server: mirror.server, leases: mirror.leases, troubles, stop: mirror.stop }
}

/** Workers on a queue that is empty, or not made yet. */
async function scene(workers: number, isNew = false) {
  const address = isNew ? newSchema(server) : await emptySchema(server)
  const rows = await openReader(address)
  const jobs = `"${queueSchema(address.schema)}".job`
  const [found] = await rows('SELECT to_regclass($1) AS made', jobs)
  if (found?.made) await rows(`DELETE FROM ${jobs}`)
  return {
    address,
    rows,
    jobs,
    workers: await Promise.all(Array.from({ length: workers }, () => openWorker(address))),
  }
}

const deadOf = (own: Server) => runRule(own, listsOfTheDead(own.address.schema))

function only<T>(list: readonly T[]): T {
  const [first] = list
  if (first === undefined || list.length !== 1) throw new Error(`${list.length} instead of one`)
  return first
}

describe.skipIf(server.missing !== null)('the queue of workers', { timeout: 60_000 }, () => {
  it('is made by any number of workers at once, and gets a tick from one of them', async () => {
    const { rows, jobs, workers } = await scene(5, true)

    const made = await Promise.all(workers.map(({ queue }) => queue.tick(HOURLY, NOON, lists(40))))

    expect(made.filter((one) => one !== null)).toEqual([[]])
    expect(await rows(`SELECT count(*)::int FROM ${jobs}`)).toEqual([{ count: 40 }])
    expect(await workers[0]?.queue.tick(HOURLY, NOON - 1000, lists(40))).toBeNull()
    expect(await workers[0]?.queue.tick('UTC 1 * * * *', NOON, lists(40))).toHaveLength(40)
  })

  it('makes no tick twice, though all its lists are read before another worker comes to it', async () => {
    const { workers } = await scene(2)
    const [first, second] = workers.map(({ queue }) => queue) as [ListQueue, ListQueue]
    await first.tick(HOURLY, NOON, lists(1))
    await first.finish(only(await first.take(5)), null)

    expect(await second.tick(HOURLY, NOON, lists(1))).toBeNull()
    expect(await second.take(5)).toEqual([])
    expect(await second.tick(HOURLY, NOON + 3_600_000, lists(1))).toEqual([])
    expect(await second.take(5)).toHaveLength(1)
  })

  it('hands out each list to one worker, and adds none that waits or runs', async () => {
    const { workers } = await scene(3)
    const [first] = workers as [Worker]
    await first.queue.add(lists(40))

    const taken = (await Promise.all(workers.flatMap(({ queue }) => [queue.take(8), queue.take(8)]))).flat()

    const names = taken.map(({ organizationId }) => organizationId)
    expect(new Set(names).size).toBe(40)
    expect(names).toHaveLength(40)
    await first.queue.add(lists(40))
    expect(await first.queue.take(8)).toEqual([])
    expect(await first.queue.tick(HOURLY, NOON, lists(40))).toHaveLength(40)
  })

  it('hands out no list of the budgets that a worker has lists enough of', async () => {
    const { workers } = await scene(1)
    const [{ queue }] = workers as [Worker]
    const budgetOf = ({ organizationId: id }: { organizationId: string }) =>
      lists(9).find(({ organizationId }) => organizationId === id)?.budget
    await queue.tick(HOURLY, NOON, lists(9))

    expect((await queue.take(9, ['token-0', 'token-2'])).map(budgetOf)).toEqual(Array(3).fill('token-1'))
    expect(await queue.take(9, [])).toHaveLength(6)
  })

  it('leaves a tick to the others when its worker is cut off in the middle', async () => {
    const { address, rows, jobs, workers } = await scene(2)
    const [first, second] = workers as [Worker, Worker]
    const other = await openReader(address)
    await other('BEGIN')
    await other(`LOCK TABLE ${jobs} IN SHARE MODE`)
    const cut = first.queue.tick(HOURLY, NOON, lists(4)).catch((error: unknown) => error)
    const waiting = "SELECT pid FROM pg_locks WHERE NOT granted AND locktype = 'relation'"
    await expect.poll(async () => (await rows(waiting)).length).toBe(1)
    first.stop()
    await rows(`SELECT pg_terminate_backend(pid) FROM (${waiting}) AS worker`)
    await other('COMMIT')

    // The first worker may have come back before it noticed that it is to stop: then the tick is its own.
    const made = [await cut, await second.queue.tick(HOURLY, NOON, lists(4))]
    expect(made.filter(Array.isArray)).toEqual([[]])
    expect(await rows(`SELECT count(*)::int FROM ${jobs}`)).toEqual([{ count: 4 }])
  })

  it('hands a list out again that was given back, and hears no more of who had it before', async () => {
    const { rows, jobs, workers } = await scene(2)
    const [first, second] = workers.map(({ queue }) => queue) as [ListQueue, ListQueue]
    await first.add(lists(1))
    const before = only(await first.take(1))
    await first.giveBack(before)
    await expect.poll(async () => (await second.take(1)).length, { timeout: 20_000 }).toBe(1)

    await first.finish(before, null)
    await first.giveBack(before)
    expect(await rows(`SELECT state, retry_count FROM ${jobs}`)).toEqual([
      { state: 'active', retry_count: 1 },
    ])
    await second.finish({ ...before, retryCount: 1 }, 'SERVER_ERROR')
    expect(await rows(`SELECT state, output FROM ${jobs}`)).toEqual([
      { state: 'completed', output: { error_code: 'SERVER_ERROR' } },
    ])
  })

  it('hands out a list of a dead worker once more, though all others rescue it', async () => {
    const { rows, jobs, workers } = await scene(4)
    const [dead, ...others] = workers.map(({ queue }) => queue) as [ListQueue, ...ListQueue[]]
    const [list, unknown, notOurs] = lists(3) as [QueuedList, QueuedList, QueuedList]
    const find = ({ organizationId }: ListNames) =>
      [list, unknown].find((one) => one.organizationId === organizationId)
    const rescue = () => Promise.all(others.map((queue) => queue.rescue(find)))
    await dead.add([list, notOurs])
    // Two that were added together come in any order.
    const claimed = (await dead.take(2)).find(({ organizationId }) => organizationId === list.organizationId)
    await rescue()
    expect(await rows(`SELECT state, retry_count FROM ${jobs} WHERE retry_count > 0`)).toEqual([])
    await rows(`UPDATE ${jobs} SET heartbeat_on = now() - interval '1 hour'`)

    await rescue()

    const taken: unknown[] = []
    await expect
      .poll(
        async () => {
          taken.push(...(await Promise.all(others.map((queue) => queue.take(5)))).flat())
          return taken
        },
        { timeout: 20_000 },
      )
      .toEqual([{ ...claimed, retryCount: 1 }])
    // One that never was in the queue: a command by hand had it.
    await rows(
      "INSERT INTO sync_jobs (organization_id, collection, owner, configured) VALUES ($1, 'orders', 'somebody', 1)",
      unknown.organizationId,
    )
    await rescue()
    expect((await Promise.all(others.map((queue) => queue.take(5)))).flat()).toHaveLength(1)
  })

  it('knows the lists of a dead worker, though another process had them for a refresh since', async () => {
    const { rows, jobs, workers } = await scene(1)
    const [{ queue, server: own, leases }] = workers as [Worker]
    const [dead, alive, read] = lists(3) as [QueuedList, QueuedList, QueuedList]
    await queue.add([dead, alive, read])
    const claims = await queue.take(3)
    await rows(`UPDATE ${jobs} SET heartbeat_on = now() - interval '11 seconds'`)
    await queue.touch(claims.filter(({ organizationId }) => organizationId === alive.organizationId))
    // That of a worker whose touches are late.
    const job = { organization: read.organizationId, collection: read.collection }
    const taken = await leases.take(job, false)

    const { organizationId, collection } = dead
    expect(await deadOf(own)).toEqual([{ organizationId, collection }])
    await leases.release({ job, epoch: taken?.epoch ?? 0 })
    expect(await deadOf(own)).toHaveLength(2)
  })

  it('outlives connections that the server ends', async () => {
    const { rows, workers } = await scene(2)
    const [first, second] = workers as [Worker, Worker]
    await first.queue.add(lists(10))
    await rows(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $$admin-mirror$$ AND datname = current_database()',
    )

    const taken = await Promise.all([first.queue.take(8), second.queue.take(8)])
    expect(taken.flat()).toHaveLength(10)
    expect([...first.troubles, ...second.troubles]).toEqual([])
  })
})

const ASKED: Record<string, (queue: ListQueue, server: Server) => Promise<unknown>> = {
  'taking some': (queue) => queue.take(8, ['token-1']),
  'looking for those of workers that died': (_queue, watched) => deadOf(watched),
}

it.skipIf(server.missing !== null)(
  'thousands of lists in the queue cost the server no more than a few',
  async () => {
    const address = newSchema(server)
    const mirror = await openPostgresMirror(address)
    const rows = await openReader(address)
    const asked: { text: string; values: readonly unknown[] }[] = []
    const note = (text: string, values: readonly unknown[] = []) => asked.push({ text, values })
    const watched: Server = {
      ...mirror.server,
      plain(text, values) {
        note(text, values)
        return mirror.server.plain(text, values)
      },
      rows(text, values) {
        note(text, values)
        return mirror.server.rows(text, values)
      },
    }
    const queue = await openQueue(watched, () => {})
    onTestFinished(() => queue.close())
    /** Database pages that the server goes through. */
    const pagesOf = async (ask: (typeof ASKED)[string]) => {
      asked.length = 0
      await ask(queue, watched)
      const { text, values } = asked[0] ?? { text: '', values: [] }
      // The least of three: what the server cleans up or counts meanwhile is no part of the statement.
      const touched: number[] = []
      for (let run = 0; run < 3; run++) {
        await rows('BEGIN')
        const [explained] = await rows(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`, ...values)
        await rows('ROLLBACK')
        const plans = explained?.['QUERY PLAN'] as { Plan: Record<string, number> }[] | undefined
        const plan = plans?.[0]?.Plan
        touched.push((plan?.['Shared Hit Blocks'] ?? 0) + (plan?.['Shared Read Blocks'] ?? 0))
      }
      return Math.min(...touched)
    }
    const few: Record<string, number> = {}
    await queue.add(lists(20))
    for (const [name, ask] of Object.entries(ASKED)) few[name] = await pagesOf(ask)
    await queue.add(lists(10_000))

    for (const [name, ask] of Object.entries(ASKED)) {
      expect(few[name], name).toBeGreaterThan(0)
      expect(await pagesOf(ask), name).toBeLessThan((few[name] ?? 0) + 100)
    }
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
