import { beforeEach, describe, expect, it } from 'vitest'
import { runnerOn } from '../../../src/store/postgres/server.ts'
import { GLOBEX, jobOf } from '../../helpers/jobs.ts'
import { openPostgresMirror, type PostgresMirror } from '../../helpers/postgres-mirror.ts'
import { emptySchema, newSchema, openDatabase, openReader } from '../../helpers/postgres.ts'
import { startProxy } from '../../helpers/proxy.ts'
import { BEGIN } from '../../helpers/test-mirror.ts'
import { describeLeases } from '../contract-leases.ts'
import { begin, leaseOf, ledgerOf } from '../stage.ts'

const server = await openDatabase()

const JOB = jobOf()

/** The statements of mirrors that wait for a lock. */
const WAITING =
  "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'admin-mirror' AND wait_event_type = 'Lock'"

describe.skipIf(server.missing !== null)('on a real server', () => {
  describeLeases('PostgreSQL', async () => {
    const first = await openPostgresMirror(await emptySchema(server))
    const mirrors = [first, await openPostgresMirror(first.address), await openPostgresMirror(first.address)]
    let opened = 0
    return {
      async open() {
        const mirror = mirrors[opened++] ?? (await openPostgresMirror(first.address))
        return runnerOn(mirror.server, { now: Date.now, signal: new AbortController().signal })
      },
    }
  })
})

describe.skipIf(server.missing !== null)('workers on one PostgreSQL mirror', () => {
  let first: PostgresMirror
  beforeEach(async () => {
    first = await openPostgresMirror(newSchema(server))
  })

  /** A worker behind a network that can be cut. */
  async function openFar() {
    const proxy = await startProxy(first.address.port)
    return { proxy, far: await openPostgresMirror({ ...first.address, port: proxy.port }, first.clock) }
  }

  const waiting = async () => (await first.rows(WAITING)).length
  const walks = () => first.rows('SELECT id::int, pages::int, rows_seen::int FROM sync_walks')

  it('give a job whose owner was cut off to another, and let the former owner write nothing', async () => {
    const { proxy, far } = await openFar()
    const { walk, lease, page, missing, close } = await begin(far, JOB, { keepsJob: true })
    proxy.refuse(true)
    proxy.cut()
    // Its time is over, as after its machine was gone for so long.
    await first.rows("UPDATE sync_workers SET heard_at = '2000-01-01' WHERE name = $1", far.leases.name)
    const other = await begin(first, JOB, { resume: walk.id, keepsJob: true })
    proxy.refuse(false)
    await far.leases.beat()

    for (const write of [
      () => page('{"no":"key"}'),
      () => missing(true),
      () => close('none', null),
      () => far.store.beginRun(lease, BEGIN),
    ])
      await expect(write()).rejects.toMatchObject({ code: 'BUSY' })
    // Its late release takes nothing from the new owner.
    await far.store.release(lease)

    expect(await walks()).toEqual([{ id: other.walk.id, pages: 0, rows_seen: 0 }])
    expect(await first.rows('SELECT 1 FROM sync_rejects')).toEqual([])
    expect((await far.store.acquire(JOB)).heldBy).toBe(first.leases.name)
    await other.page('{"no":"key"}')
    expect(await walks()).toMatchObject([{ pages: 1 }])
  })

  it('take a job once, though two of them find it free in the same moment', async () => {
    const second = await openPostgresMirror(first.address, first.clock)
    const somebody = await openReader(first.address)
    await somebody('BEGIN')
    await somebody('SELECT 1 FROM sync_jobs FOR UPDATE')
    const both = Promise.all([first, second].map(({ store }) => store.acquire(JOB)))
    await expect.poll(waiting).toBe(2)
    await somebody('COMMIT')

    expect((await both).filter(({ lease }) => lease)).toHaveLength(1)
  })

  it('find their rows though another worker makes the key a text while they look', async () => {
    const second = await openPostgresMirror(first.address, first.clock)
    const { page } = await begin(first)
    await page('{"id":1}')
    const others = await begin(second, jobOf({}, GLOBEX))
    const somebody = await openReader(first.address)
    await somebody('BEGIN')
    await somebody('SELECT 1 FROM sync_seq FOR UPDATE')
    const makesText = others.page('{"id":"x"}')
    await expect.poll(waiting).toBe(1)
    const found = page('{"id":1}')
    await expect.poll(waiting).toBe(2)
    await somebody('COMMIT')
    await makesText

    expect((await found).stored).toMatchObject([{ state: 'same' }])
  })

  it('write nothing more once a newer worker has changed the schema', async () => {
    const lease = await leaseOf(first.store)
    await first.rows("UPDATE sync_settings SET value = '999' WHERE name = 'version'")

    const lost = { name: 'MirrorLostError', code: 'DATABASE' }
    await expect(first.store.beginRun(lease, BEGIN)).rejects.toMatchObject(lost)
    expect(await walks()).toEqual([])
  })

  it('write a page once though their connection breaks while it waits for a lock, and it is sent again', async () => {
    const { proxy, far } = await openFar()
    const { walk, page } = await begin(far)
    const somebody = await openReader(first.address)
    await somebody('BEGIN')
    await somebody('LOCK TABLE sync_runs IN EXCLUSIVE MODE')
    const written = page('{"no":"key"}')
    await expect.poll(waiting).toBe(1)
    proxy.cut()
    await expect.poll(waiting).toBe(2)
    await somebody('COMMIT')
    await written

    expect(await walks()).toEqual([{ id: walk.id, pages: 1, rows_seen: 1 }])
    expect(await ledgerOf(first.store, walk.id)).toHaveLength(1)
  })

  it('begin a walk once though the answer to its COMMIT is lost', async () => {
    const { proxy, far } = await openFar()
    const lease = await leaseOf(far.store)
    let lost = 0
    proxy.alter((bytes) => {
      if (lost > 0 || !bytes.includes('COMMIT')) return bytes
      lost++
      proxy.cut()
      return Buffer.alloc(0)
    })
    const { walk, runId } = await far.store.beginRun(lease, BEGIN)

    expect(lost).toBe(1)
    expect(await walks()).toEqual([{ id: walk.id, pages: 0, rows_seen: 0 }])
    expect(await first.rows('SELECT id::int FROM sync_runs')).toEqual([{ id: runId }])
  })
})
