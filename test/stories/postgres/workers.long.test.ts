import { afterAll, describe, expect, it } from 'vitest'
import { StatusSchema } from '../../../src/report/status.ts'
import { items, pageOf, serve } from '../../helpers/list-server.ts'
import { onPostgres, type PostgresWorkspace } from '../../helpers/on-postgres.ts'
import { type openReader, startPostgres } from '../../helpers/postgres.ts'
import type { LogLine, Running } from '../../helpers/processes.ts'
import { organization } from '../../helpers/workspace.ts'

const server = await startPostgres()
afterAll(() => server.stop())

const ITEMS = items(9)
const EVERY_SECOND = '* * * * * *'
/** Fires in no test: what runs was due at the start. */
const NEW_YEAR = '0 0 1 1 *'

const ORGANIZATIONS = Array.from({ length: 6 }, (_one, index) => organization(`acme${index}`, index + 1))

const isStarted = ({ event }: LogLine) => event === 'daemon_started'

type Rows = Awaited<ReturnType<typeof openReader>>

async function stopped(workers: readonly Running[]): Promise<unknown[]> {
  for (const worker of workers) worker.killAll('SIGTERM')
  return Promise.all(workers.map(async ({ ended }) => (await ended).code))
}

/** Whether nothing waits in the queue, and nothing of it runs. */
async function isQueueEmpty(rows: Rows, { address }: PostgresWorkspace): Promise<boolean> {
  const jobs = `"${address.schema}_queue".job`
  const [table] = await rows('SELECT to_regclass($1) AS made', jobs)
  if (table?.made === null) return false
  const left = await rows(`SELECT 1 FROM ${jobs} WHERE state < 'completed'`)
  const done = await rows(`SELECT 1 FROM ${jobs} WHERE state = 'completed'`)
  return left.length === 0 && done.length > 0
}

const runs = (rows: Rows) => rows("SELECT status FROM sync_runs WHERE trigger = 'schedule' ORDER BY id")
const WAIT = { timeout: 40_000, interval: 200 }

describe.skipIf(server.missing !== null)('workers of one PostgreSQL mirror', () => {
  it('read each list that is due once, however many start', async () => {
    const api = await serve((asked) => pageOf(ITEMS, asked))
    const mirror = onPostgres(server, api.url, { organizations: ORGANIZATIONS, schedule: NEW_YEAR })
    const workers = [mirror.start(['start']), mirror.start(['start']), mirror.start(['start'])]
    await Promise.all(workers.map((worker) => worker.log(isStarted)))
    const rows = await mirror.rows()
    await expect.poll(async () => (await runs(rows)).length, WAIT).toBe(ORGANIZATIONS.length)
    await expect.poll(() => isQueueEmpty(rows, mirror), WAIT).toBe(true)
    const last = mirror.start(['start'])
    const { due } = await last.log(isStarted)
    const told = StatusSchema.parse(JSON.parse((await mirror.run(['status', '--json'])).stdout))
    expect(told.queue).toEqual({ waiting: 0, oldest_ms: null, running: 0, failed: 0 })
    expect((await mirror.run(['status'])).stdout).toContain('\nqueue: no list waits; 0 being read\n')

    expect(await stopped([...workers, last])).toEqual([0, 0, 0, 0])
    expect(due).toBe(0)
    expect(await runs(rows)).toEqual(ORGANIZATIONS.map(() => ({ status: 'succeeded' })))
    const asked = Object.values(Object.groupBy(api.asked, ({ token }) => token)).map((all) => all?.length)
    expect(new Set(asked).size).toBe(1)
    expect(await rows('SELECT count(*)::int FROM orders')).toEqual([{ count: 9 * ORGANIZATIONS.length }])
  })

  it('go on making ticks when all but one of them are killed, and the server restarts', async () => {
    const api = await serve((asked) => pageOf(ITEMS, asked))
    const mirror = onPostgres(server, api.url, {
      organizations: ORGANIZATIONS,
      schedule: EVERY_SECOND,
      refresh: false,
    })
    const workers = [mirror.start(['start']), mirror.start(['start']), mirror.start(['start'])] as const
    await Promise.all(workers.map((worker) => worker.log(isStarted)))
    const [first, second, third] = workers
    const readAgain = async () => {
      const from = api.asked.length
      const tokens = () => new Set(api.asked.slice(from).map(({ token }) => token)).size
      await expect.poll(tokens, WAIT).toBe(ORGANIZATIONS.length)
    }
    await readAgain()
    first.killAll('SIGKILL')
    await readAgain()
    second.killAll('SIGKILL')
    await readAgain()
    await server.restart()
    await readAgain()

    expect(await stopped([third])).toEqual([0])
    const { logs } = await third.ended
    expect(logs.filter(({ event }) => event === 'run_crashed' || event === 'queue_trouble')).toEqual([])
    expect(await mirror.run(['sync'])).toMatchObject({ code: 0 })
    const rows = await mirror.rows()
    expect(await rows('SELECT count(*)::int FROM orders')).toEqual([{ count: 9 * ORGANIZATIONS.length }])
  })
})
