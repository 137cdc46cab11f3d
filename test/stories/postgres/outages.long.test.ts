import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, describe, expect, it } from 'vitest'
import type { Clock } from '../../helpers/in-process.ts'
import { items, pageOf, serve } from '../../helpers/list-server.ts'
import { onPostgres } from '../../helpers/on-postgres.ts'
import { openReader, startPostgres } from '../../helpers/postgres.ts'
import { type LogLine, stop } from '../../helpers/processes.ts'
import { startProxy } from '../../helpers/proxy.ts'
import { ACME } from '../../helpers/scene.ts'
import { createWatch } from '../../helpers/watch.ts'
import { variable } from '../../helpers/workspace.ts'

// A server that refuses its work for a while, in the ways that are no cut of the network: a worker says what it waits for,
// once, and goes on.

const server = await startPostgres()
afterAll(() => server.stop())

const BACK = 'the PostgreSQL server answers again'
/** More than one page is asked for in so many waits, and a worker that repeats itself has said its reason again. */
const LONG_ENOUGH = 40

type Admin = Awaited<ReturnType<typeof openReader>>

interface Outage {
  begin: (admin: Admin, role: string) => Promise<unknown>
  says: RegExp
  end: (admin: Admin, role: string) => Promise<unknown>
}

const setting = (name: string, value: string): Omit<Outage, 'says'> => ({
  begin: (admin, role) => admin(`ALTER ROLE ${role} SET ${name} = '${value}'`),
  end: (admin, role) => admin(`ALTER ROLE ${role} RESET ${name}`),
})

const OUTAGES: Record<string, Outage> = {
  'that lets nobody in': {
    begin: (admin, role) => admin(`ALTER ROLE ${role} CONNECTION LIMIT 0`),
    says: /has no connection left: raise its max_connections, or run fewer workers/,
    end: (admin, role) => admin(`ALTER ROLE ${role} CONNECTION LIMIT -1`),
  },
  'that only reads, as before a failover': {
    ...setting('default_transaction_read_only', 'on'),
    says: /is read-only: name the primary server/,
  },
  'whose disk is full': {
    begin: (admin) =>
      admin(`
        CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
          $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = 'disk_full'; END $$;
        CREATE TRIGGER full_disk BEFORE UPDATE ON sync_jobs EXECUTE FUNCTION full_disk()`),
    says: /has no room on its disk/,
    end: (admin) => admin('DROP FUNCTION full_disk CASCADE'),
  },
  'that ends each statement by its statement_timeout': {
    ...setting('statement_timeout', '1ms'),
    says: /has ended a statement by its statement_timeout: raise it for the role/,
  },
}

const isFinished = ({ event, status }: LogLine) => event === 'run_finished' && status === 'succeeded'
const isWaiting = ({ event }: LogLine) => event === 'mirror_busy'

/** Waits take a fiftieth of their time, and can be counted. */
function createHaste() {
  let count = 0
  const { changed, until } = createWatch()
  const clock: Clock = {
    now: Date.now,
    async sleep(ms, signal) {
      count++
      changed()
      await sleep(ms / 50, undefined, signal ? { signal } : {})
    },
  }
  /** Resolves after so many more waits. */
  async function waits(more: number): Promise<void> {
    const last = count + more
    await until(() => (count < last ? undefined : count))
  }
  return { clock, waits }
}

/** A worker that has read its list, with a role of its own, behind a network. */
async function startWorker() {
  const list = items(9)
  const api = await serve((asked) => pageOf(list, asked))
  const url = new URL(server.url)
  const proxy = await startProxy(Number(url.port))
  url.port = String(proxy.port)
  const mirror = onPostgres({ url: url.href }, api.url, {})
  const { address, workspace } = mirror
  const role = `role_${address.schema}`
  const admin = await openReader({ ...address, port: Number(new URL(server.url).port) })
  await admin(`CREATE ROLE ${role} LOGIN PASSWORD 'of the outage'`)
  await admin(`GRANT CREATE ON DATABASE ${address.database} TO ${role}`)
  const { database, schema } = address
  const place = `postgres://${role}:${variable('DB_PASSWORD')}@127.0.0.1:${proxy.port}/${database}?schema=${schema}`
  const settings = { baseUrl: api.url, organizations: [ACME], collections: { establishments: false } }
  workspace.configure({ ...settings, database: place, schedule: '* * * * * *', refresh: false })
  const env = { DB_PASSWORD: workspace.secret('of the outage') }
  const { clock, waits } = createHaste()
  const worker = workspace.startHere(['start'], { env, clock })
  await worker.log(isFinished)
  return { list, api, proxy, address, workspace, role, admin, env, worker, waits }
}

describe.skipIf(server.missing !== null)('a worker waits for a server', () => {
  it.each(Object.entries(OUTAGES))('%s, says so once, and goes on', async (_name, { begin, says, end }) => {
    const { list, api, proxy, address, workspace, role, admin, env, worker, waits } = await startWorker()

    await begin(admin, role)
    proxy.cut()
    await worker.log((line) => isWaiting(line) && says.test(line.msg))
    await waits(LONG_ENOUGH)
    const asked = api.asked.length
    await waits(LONG_ENOUGH)
    expect(api.asked).toHaveLength(asked)
    await end(admin, role)
    proxy.cut()
    await expect.poll(() => api.asked.length, { timeout: 40_000 }).toBeGreaterThan(asked + 5)
    const { code, logs } = await stop(worker)
    expect(code).toBe(0)
    const told = logs.filter(isWaiting).map(({ msg }) => msg)
    expect(told.at(-1)).toBe(BACK)
    // The cut connections are one reason, and what the server says is another.
    const reasons = told.filter((msg) => msg !== BACK)
    expect(reasons).toEqual([...new Set(reasons)])
    expect(told.length).toBeLessThanOrEqual(6)
    expect(logs.filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([])
    expect(await workspace.run(['sync'], { env })).toMatchObject({ code: 0 })
    const rows = await openReader({ ...address, port: Number(new URL(server.url).port) })
    expect(await rows('SELECT count(*)::int FROM orders')).toEqual([{ count: list.length }])
  })
})
