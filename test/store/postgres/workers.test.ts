import { beforeEach, describe, expect, it } from 'vitest'
import { runnerOn } from '../../../src/store/postgres/server.ts'
import { noTraffic } from '../../../src/sync/run.ts'
import type { Lease } from '../../../src/sync/store.ts'
import { jobOf } from '../../helpers/jobs.ts'
import { emptySchema } from '../../helpers/kept-schema.ts'
import { newSchema, openDatabase, openReader } from '../../helpers/postgres.ts'
import { openPostgresMirror, type PostgresMirror } from '../../helpers/postgres-mirror.ts'
import { startProxy } from '../../helpers/proxy.ts'
import { BEGIN } from '../../helpers/test-mirror.ts'
import { describeLeases } from '../contract-leases.ts'

const server = await openDatabase()

const JOB = jobOf()
/** A page with one item that has no key. */
const CHANGES = {
  page: 1,
  items: 1,
  keys: [],
  upserts: [],
  rejects: [{ id: '\0x', reason: 'r', text: '1' }],
}

const ENTRY = {
  ordinal: 1,
  pass: 1,
  page: 1,
  ids: ['\0x'],
  items: 1,
  total: null,
  next: null,
  lastPage: null,
  why: 'forward' as const,
  resumed: false,
  at: 1,
}
const RULE = { walkId: 1, keyed: 5, isSeen: () => true, atOnce: true }

/** The statements of mirrors that wait for a lock. */
const WAITING =
  "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'admin-mirror' AND wait_event_type = 'Lock'"

async function taken({ store }: PostgresMirror): Promise<Lease> {
  const { lease, heldBy } = await store.acquire(JOB)
  if (!lease) throw new Error(`held by ${heldBy}`)
  return lease
}

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

  /** Its time is over, as after its machine was gone for so long. */
  const expire = (leases: { name: string }) =>
    first.rows("UPDATE sync_workers SET heard_at = '2000-01-01' WHERE name = $1", leases.name)

  /** A worker behind a network that can be cut. */
  async function openFar() {
    const proxy = await startProxy(first.address.port)
    const far = await openPostgresMirror({ ...first.address, port: proxy.port }, first.clock)
    return {
      far,
      async cutOff() {
        proxy.refuse(true)
        proxy.cut()
        await expire(far.leases)
      },
      async comeBack() {
        proxy.refuse(false)
        await far.leases.beat()
      },
    }
  }

  it('give a job whose owner was cut off to another, and let the former owner write nothing', async () => {
    const { far, cutOff, comeBack } = await openFar()
    const lease = await taken(far)
    const { walk, runId } = await far.store.beginRun(lease, BEGIN)
    const run = { id: runId, traffic: noTraffic() }
    await cutOff()
    const other = await taken(first)
    await comeBack()

    const answer = { walk, entry: ENTRY, newToWalk: 1, nextPage: 2 }
    const page = { changes: CHANGES, run, at: 1, answer }
    const state = far.store
    const refused = { code: 'BUSY' }
    await expect(state.commit(lease, page)).rejects.toMatchObject(refused)
    await expect(state.findMissing(lease, RULE)).rejects.toMatchObject(refused)
    const closing = { walkId: walk.id, run, outcome: null, removals: 'none' as const, refresh: null }
    await expect(state.closeWalk(lease, closing)).rejects.toMatchObject(refused)
    await expect(state.beginRun(lease, BEGIN)).rejects.toMatchObject(refused)
    await state.release(lease)

    expect(await first.rows('SELECT pages::int FROM sync_walks')).toEqual([{ pages: 0 }])
    expect(await first.rows('SELECT 1 FROM sync_rejects')).toEqual([])
    // Its late release takes nothing from the new owner.
    expect((await far.store.acquire(JOB)).heldBy).toBe(first.leases.name)
    await first.store.commit(other, page)
    expect(await first.rows('SELECT pages::int FROM sync_walks')).toEqual([{ pages: 1 }])
  })

  it('take a job once, though two of them find it free in the same moment', async () => {
    const second = await openPostgresMirror(first.address, first.clock)
    const somebody = await openReader(first.address)
    await somebody('BEGIN')
    await somebody('SELECT 1 FROM sync_jobs FOR UPDATE')
    const both = Promise.all([first, second].map(({ store }) => store.acquire(JOB)))
    await expect.poll(async () => (await first.rows(WAITING)).length).toBe(2)
    await somebody('COMMIT')

    expect((await both).filter(({ lease }) => lease)).toHaveLength(1)
  })

  it('write nothing more once a newer worker has changed the schema', async () => {
    const lease = await taken(first)
    await first.rows("UPDATE sync_settings SET value = '999' WHERE name = 'version'")

    const lost = { name: 'MirrorLostError', code: 'DATABASE' }
    await expect(first.store.beginRun(lease, BEGIN)).rejects.toMatchObject(lost)
    expect(await first.rows('SELECT 1 FROM sync_walks')).toEqual([])
  })

  it('write a page once though their connection breaks while it waits for a lock, and it is sent again', async () => {
    const proxy = await startProxy(first.address.port)
    const far = await openPostgresMirror({ ...first.address, port: proxy.port }, first.clock)
    const lease = await taken(far)
    const { walk, runId } = await far.store.beginRun(lease, BEGIN)
    const somebody = await openReader(first.address)
    await somebody('BEGIN')
    await somebody('LOCK TABLE sync_runs IN EXCLUSIVE MODE')
    const waiting = async () => (await first.rows(WAITING)).length
    const answer = { walk, entry: ENTRY, newToWalk: 1, nextPage: 2 }
    const run = { id: runId, traffic: noTraffic() }
    const written = far.store.commit(lease, { changes: CHANGES, run, at: 1, answer })
    await expect.poll(waiting).toBe(1)
    proxy.cut()
    await expect.poll(waiting).toBe(2)
    await somebody('COMMIT')
    await written

    expect(await first.rows('SELECT pages::int, rows_seen::int FROM sync_walks')).toEqual([
      { pages: 1, rows_seen: 1 },
    ])
    expect(await first.rows('SELECT ordinal::int FROM sync_pages')).toEqual([{ ordinal: 1 }])
  })

  it('begin a walk once though the answer to its COMMIT is lost', async () => {
    const { address, clock, rows } = first
    const proxy = await startProxy(address.port)
    const far = await openPostgresMirror({ ...address, port: proxy.port }, clock)
    const lease = await taken(far)
    let lost = 0
    proxy.alter((bytes) => {
      if (lost > 0 || !bytes.includes('COMMIT')) return bytes
      lost++
      proxy.cut()
      return Buffer.alloc(0)
    })
    const { walk, runId } = await far.store.beginRun(lease, BEGIN)

    expect(lost).toBe(1)
    expect(await rows('SELECT id::int FROM sync_walks')).toEqual([{ id: walk.id }])
    expect(await rows('SELECT id::int FROM sync_runs')).toEqual([{ id: runId }])
  })
})
