import { beforeEach, describe, expect, it } from 'vitest'
import { identifyItems } from '../../../src/sync/items.ts'
import { compareWithStore } from '../../../src/sync/page-writer.ts'
import { noTraffic } from '../../../src/sync/run.ts'
import type { Lease, Run, Walk } from '../../../src/sync/store.ts'
import { jobOf } from '../../helpers/jobs.ts'
import { emptySchema } from '../../helpers/kept-schema.ts'
import { pageOf } from '../../helpers/pages.ts'
import { openDatabase, openReader } from '../../helpers/postgres.ts'
import { openPostgresMirror, type PostgresMirror } from '../../helpers/postgres-mirror.ts'
import { startProxy, type TestProxy } from '../../helpers/proxy.ts'
import { BEGIN } from '../../helpers/test-mirror.ts'

// The connection breaks while a statement waits for somebody's lock: it is sent again, and both copies run. Those whose COMMIT is in doubt
// are in the histories of test/simulation.

const server = await openDatabase()

const JOB = jobOf()

/** Makes a statement wait until the function that it returns is called. */
type Obstacle = (connect: () => Promise<Rows>) => Promise<() => Promise<unknown>>

type Rows = Awaited<ReturnType<typeof openReader>>

/** Somebody else's lock. */
const locked =
  (statement: string): Obstacle =>
  async (connect) => {
    const somebody = await connect()
    await somebody('BEGIN')
    await somebody(statement)
    return () => somebody('COMMIT')
  }

const OBSTACLES: [string, Obstacle][] = [
  ['a lock on a table', locked('LOCK TABLE sync_runs IN EXCLUSIVE MODE')],
  ['a lock on the rows of the list', locked('SELECT 1 FROM orders_raw FOR UPDATE')],
]

describe.skipIf(server.missing !== null)('a statement that is sent again while its first copy runs', () => {
  let proxy: TestProxy
  let mirror: PostgresMirror
  let lease: Lease
  let walk: Walk
  let run: Run
  /** Not through the proxy. */
  let connect: () => Promise<Rows>
  let rows: Rows
  beforeEach(async () => {
    const address = await emptySchema(server)
    connect = () => openReader(address)
    rows = await connect()
    proxy = await startProxy(address.port)
    mirror = await openPostgresMirror({ ...address, port: proxy.port })
    const acquired = await mirror.store.acquire(JOB)
    if (!acquired.lease) throw new Error('somebody has the list')
    lease = acquired.lease
    const begun = await mirror.store.beginRun(lease, BEGIN)
    walk = begun.walk
    run = { id: begun.runId, traffic: noTraffic() }
  })

  /** What a page of two items changes, and the ids of its items. */
  async function changesOf(number: number, name: string) {
    const page = pageOf(
      ['1', '2'].map((id) => `{"id":${id},"name":"${name}"}`),
      { number },
    )
    const items = identifyItems(JOB, page)
    const { changes } = await compareWithStore(mirror.store, JOB, page, items)
    return { changes, ids: items.map(({ id }) => id) }
  }

  async function writePage(ordinal: number, name: string) {
    const { changes, ids } = await changesOf(ordinal, name)
    const at = mirror.clock.now()
    const entry = {
      ordinal,
      pass: 1,
      page: ordinal,
      ids,
      items: ids.length,
      total: null,
      next: null,
      lastPage: null,
      why: 'forward' as const,
      resumed: false,
      at,
    }
    const answer = { walk, entry, newToWalk: 2, nextPage: ordinal + 1 }
    return mirror.store.commit(lease, { changes, run, at, answer })
  }

  /** Statements of this mirror that wait. */
  async function waiting(): Promise<number> {
    const [row] = await rows(
      "SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'admin-mirror' AND state = 'active' AND wait_event_type IN ('Lock', 'IPC')",
    )
    return Number(row?.count)
  }

  /** `task`, whose connections break once the server is at work on it, and which goes on after its second copy waits, too. */
  async function twice<T>(obstacle: Obstacle, task: () => Promise<T>): Promise<T> {
    const remove = await obstacle(connect)
    const written = task()
    await expect.poll(waiting).toBe(1)
    proxy.cut()
    await expect.poll(waiting).toBe(2)
    await remove()
    const result = await written
    await expect.poll(waiting).toBe(0)
    return result
  }

  const counts = async () => ({
    walk: await rows('SELECT pages::int, rows_seen::int FROM sync_walks'),
    ledger: await rows('SELECT ordinal::int FROM sync_pages ORDER BY ordinal'),
    versions: await rows(
      `SELECT id::int, _json::json ->> 'name' AS name FROM orders_history ORDER BY _valid_to, id`,
    ),
    live: await rows('SELECT id::int, name FROM orders ORDER BY id'),
  })

  it.each(OBSTACLES)('writes a page of a walk once, at %s', async (_name, obstacle) => {
    await writePage(1, 'one')
    mirror.clock.advance(1000)
    await twice(obstacle, () => writePage(2, 'two'))
    mirror.clock.advance(1000)
    await writePage(3, 'three')

    expect(await counts()).toEqual({
      walk: [{ pages: 3, rows_seen: 6 }],
      ledger: [{ ordinal: 1 }, { ordinal: 2 }, { ordinal: 3 }],
      versions: ['one', 'one', 'two', 'two'].map((name, index) => ({ id: 1 + (index % 2), name })),
      live: [1, 2].map((id) => ({ id, name: 'three' })),
    })
    expect(await rows('SELECT rows_changed::int FROM sync_runs')).toEqual([{ rows_changed: 4 }])
  })
})
