import { describe, expect, it, onTestFinished } from 'vitest'
import type { Claim } from '../../../src/schedule/workers.ts'
import { inTurns, openQueue, type WorkQueue } from '../../../src/store/postgres/queue.ts'
import { openPostgresMirror } from '../../helpers/postgres-mirror.ts'
import { emptySchema, newSchema, openDatabase, openReader } from '../../helpers/postgres.ts'

const server = await openDatabase()

const lists = (count: number, budgets = 3) =>
  Array.from({ length: count }, (_one, index) => ({
    key: `list ${index}`,
    budget: `token-${index % budgets}`,
  }))

/** Workers on a queue that is empty, or not made yet. */
async function scene(workers: number, isNew = false) {
  const address = isNew ? newSchema(server) : await emptySchema(server)
  const rows = await openReader(address)
  const jobs = `${address.schema}_queue.job`
  const [found] = await rows('SELECT to_regclass($1) AS made', jobs)
  if (found?.made) await rows(`DELETE FROM ${jobs}`)
  const open = async () => {
    const mirror = await openPostgresMirror(address)
    const queue = await openQueue(mirror.server, () => {})
    onTestFinished(() => queue.close())
    return queue
  }
  const queues = await Promise.all(Array.from({ length: workers }, open))
  return { rows, jobs, queues: queues as [WorkQueue, ...WorkQueue[]] }
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
  it('is made by any number of workers at once, hands out each entry to one, and adds none that waits or is taken', async () => {
    const { rows, jobs, queues } = await scene(4, true)
    const [first] = queues
    await Promise.all(queues.map((queue) => queue.send('lists', lists(40))))
    expect(await rows(`SELECT count(*)::int FROM ${jobs}`)).toEqual([{ count: 40 }])
    await first.send('refreshes', [{ key: 'token', budget: 'token' }])

    const taken = await Promise.all(
      queues.flatMap((queue) => [queue.take('lists', 8), queue.take('lists', 8)]),
    )

    const keys = lists(40).map(({ key }) => key)
    expect(taken.flatMap((some) => some.map(({ key }) => key)).toSorted()).toEqual(keys.toSorted())
    await first.send('lists', lists(40))
    expect(await first.take('lists', 8)).toEqual([])
    expect(await first.take('refreshes', 8)).toMatchObject([{ key: 'token' }])
  })

  it('hands out 25 lists of a budget at once, so that those of others find a place', async () => {
    const { queues } = await scene(1)
    const [queue] = queues
    await queue.send('lists', lists(60, 1))
    for (let turn = 0; turn < 10; turn++) await queue.take('lists', 8)
    await queue.send('lists', [{ key: 'other', budget: 'other' }])

    expect(await queue.take('lists', 8)).toMatchObject([{ key: 'other' }])
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
    expect(await first.touch('lists', [before])).toEqual(new Set())
    expect(await second.touch('lists', [after])).toEqual(new Set([after.id]))
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
})

it('has of each budget one list after the other', () => {
  const all = ['a1', 'a2', 'a3', 'b1', 'b2', 'c1'].map((name) => ({ name, budget: name.slice(0, 1) }))

  expect(inTurns(all).map(({ name }) => name)).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3'])
})
