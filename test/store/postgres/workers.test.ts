import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { namesOf } from '../../../src/store/core/jobs.ts'
import {
  announceDaemon,
  createLeases,
  forgetDeadDaemons,
  livingWorkers,
  readDaemons,
} from '../../../src/store/postgres/leases.ts'
import { migrate } from '../../../src/store/postgres/migrate.ts'
import { connectServer, type Server } from '../../../src/store/postgres/server/server.ts'
import { LATEST_VERSION } from '../../../src/store/schema.ts'
import { noTraffic } from '../../../src/sync/run.ts'
import type { Lease } from '../../../src/sync/store.ts'
import { ACME, jobOf } from '../../helpers/jobs.ts'
import { lockName } from '../../helpers/lock-name.ts'
import { newSchema, openDatabase, openReader } from '../../helpers/postgres.ts'
import { openPostgresMirror, type PostgresMirror } from '../../helpers/postgres-mirror.ts'
import { startProxy } from '../../helpers/proxy.ts'
import { afterRealTime } from '../../helpers/real-time.ts'
import { runOnce } from '../../helpers/run-once.ts'
import { scriptedList } from '../../helpers/scripted-list.ts'
import { BEGIN } from '../../helpers/test-mirror.ts'

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
const RULE = { walkId: 1, keyed: 5, atOnce: true }

function fail(): never {
  throw new Error('no')
}

async function taken({ store }: PostgresMirror): Promise<Lease> {
  const { lease, heldBy } = await store.acquire(JOB)
  if (!lease) throw new Error(`held by ${heldBy}`)
  return lease
}

describe.skipIf(server.missing !== null)('workers on one PostgreSQL mirror', () => {
  let first: PostgresMirror
  beforeEach(async () => {
    first = await openPostgresMirror(newSchema(server))
  })
  const another = () => openPostgresMirror(first.address, first.clock)

  const OF_WORKERS =
    "FROM pg_locks JOIN pg_database ON oid = database WHERE datname = current_database() AND locktype = 'advisory'"
  const LOCKS = `${OF_WORKERS} AND objsubid = 1 AND granted AND pid <> pg_backend_pid()`

  const expectLocks = (count: number) =>
    expect.poll(async () => (await first.rows(`SELECT 1 ${LOCKS}`)).length).toBe(count)

  /** Ends the connections that hold the locks of workers, as a server does with those of a dead machine. */
  async function breakConnections(): Promise<void> {
    await first.rows(`SELECT pg_terminate_backend(pid, 5000) ${LOCKS}`)
  }

  /** A worker that is cut off, and taken for dead, until it comes back. */
  async function openFar() {
    const proxy = await startProxy(first.address.port)
    const far = await openPostgresMirror({ ...first.address, port: proxy.port }, first.clock)
    return {
      far,
      async cutOff() {
        proxy.refuse(true)
        proxy.cut()
        await expectLocks(1)
      },
      async comeBack() {
        proxy.refuse(false)
        await expectLocks(2)
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
    const page = { changes: CHANGES, run, at: 1, answer, saved: null }
    const state = far.store
    const refused = { code: 'BUSY' }
    await expect(state.commit(lease, page)).rejects.toMatchObject(refused)
    await expect(state.findMissing(lease, RULE)).rejects.toMatchObject(refused)
    const closing = { walk, run, outcome: null, removals: 'none' as const, refresh: null }
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

  it('keep their jobs when their connections break and come back', async () => {
    const second = await another()
    const lease = await taken(first)
    await breakConnections()
    // Nobody has to ask for anything: the owner comes back by itself.
    await expectLocks(2)

    expect((await second.store.acquire(JOB)).heldBy).toEqual(expect.any(String))
    expect((await first.store.beginRun(lease, BEGIN)).runId).toBeGreaterThan(0)
  })

  it('keep their jobs while the server still holds the lock of the connection that they lost', async () => {
    const second = await another()
    await taken(first)
    const somebody = await openReader(first.address)
    const name = `${first.address.schema} ${first.leases.name}`
    const waits = somebody('SELECT pg_advisory_lock(hashtextextended($1, 0))', name)
    const isWaiting = async () => (await first.rows(`SELECT 1 ${OF_WORKERS} AND NOT granted`)).length
    await expect.poll(isWaiting).toBe(1)
    await breakConnections()
    await waits
    await expect.poll(isWaiting).toBe(1)

    expect((await second.store.acquire(JOB)).heldBy).toBe(first.leases.name)
    await somebody('SELECT pg_advisory_unlock(hashtextextended($1, 0))', name)
    await expectLocks(2)
  })

  it('write nothing after a failover that lost the number of their lease, which another one is given then', async () => {
    const { far, cutOff, comeBack } = await openFar()
    const lease = await taken(far)
    await cutOff()
    await first.rows("SELECT setval('sync_epochs', last_value, false) FROM sync_epochs")
    await taken(first)
    await comeBack()

    await expect(far.store.beginRun(lease, BEGIN)).rejects.toMatchObject({ code: 'BUSY' })
  })

  it('say of a job that somebody takes at this moment whatever is known of it, and that its schedule comes again', async () => {
    const somebody = await openReader(first.address)
    await somebody('BEGIN')
    await somebody('SELECT 1 FROM sync_jobs FOR UPDATE')
    const taking = taken(first)

    const list = scriptedList({ ids: [1] })
    const { error } = await runOnce(first, list, { trigger: 'schedule' })

    expect(error?.message).toBe(
      'acme orders: another process is working on it; nothing is wrong, and the next scheduled run tries again',
    )
    await somebody('COMMIT')
    await taking
  })

  it('take a job once, though two of them find it free in the same moment', async () => {
    const second = await another()
    const somebody = await openReader(first.address)
    await somebody('BEGIN')
    await somebody('SELECT 1 FROM sync_jobs FOR UPDATE')
    const both = Promise.all([first, second].map(({ store }) => store.acquire(JOB)))
    const isWaiting =
      "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'admin-mirror' AND wait_event_type = 'Lock'"
    await expect.poll(async () => (await first.rows(isWaiting)).length).toBe(2)
    await somebody('COMMIT')

    expect((await both).filter(({ lease }) => lease)).toHaveLength(1)
  })

  it('take several jobs at once though the connection with their lock breaks', async () => {
    const second = await another()
    const jobs = ['a', 'b', 'c', 'd'].map((name) => jobOf({ name }))
    await Promise.all(jobs.map((job) => first.store.acquire(job)))
    await breakConnections()
    const more = ['e', 'f', 'g', 'h'].map((name) => jobOf({ name }))
    const leases = await Promise.all(more.map((job) => first.store.acquire(job)))
    for (const { lease } of leases) if (lease) await first.store.release(lease)

    expect(leases.map(({ lease }) => lease === undefined)).toEqual([false, false, false, false])
    await expectLocks(2)
    for (const job of more) expect((await second.store.acquire(job)).heldBy).toBeUndefined()
    for (const job of jobs) expect((await second.store.acquire(job)).heldBy).toBe(first.leases.name)
  })

  /** Leases of a worker of its own, which finds the server changed so. */
  async function createOwnLeases(
    change: (real: Server) => Server,
    { port = first.address.port, sleep = async () => {} } = {},
  ) {
    const { signal } = new AbortController()
    const patience = { now: first.clock.now, sleep, after: afterRealTime, signal }
    const real = await connectServer({ ...first.address, port }, patience)
    const leases = await createLeases(change(real), lockName())
    onTestFinished(async () => {
      await leases.close()
      await real.close()
    })
    return leases
  }

  it('pause after each attempt to reach a server that is away, and take their jobs back', async () => {
    const { address, rows } = first
    const proxy = await startProxy(address.port)
    const gate = Promise.withResolvers<void>()
    let pauses = 0
    const sleep = () => {
      pauses++
      return gate.promise
    }
    await createOwnLeases((real) => real, { port: proxy.port, sleep })
    proxy.refuse(true)
    proxy.cut()
    await expect.poll(() => pauses).toBe(1)
    // Time enough for thousands of further attempts.
    for (let count = 0; count < 100; count++) await rows('SELECT 1')

    expect(pauses).toBe(1)
    proxy.refuse(false)
    gate.resolve()
    await expectLocks(2)
  })

  it('take their jobs back though the server refused that for as long as they tried', async () => {
    let isRefusing = false
    let refused = 0
    const leases = await createOwnLeases((real) => ({
      ...real,
      async connect(onLost) {
        if (!isRefusing) return real.connect(onLost)
        refused++
        throw Object.assign(new Error('refused'), { code: '57014' })
      },
    }))
    isRefusing = true
    await breakConnections()
    await expect.poll(() => refused).toBe(15)
    isRefusing = false

    await leases.renew()
    await expectLocks(2)
  })

  it('wait for their lock though their role waits for none', async () => {
    let connections = 0
    const leases = await createOwnLeases((real) => ({
      ...real,
      async connect(onLost) {
        connections++
        const own = await real.connect(onLost)
        await own.rows("SELECT set_config('lock_timeout', '1', false)", [])
        return own
      },
    }))
    const somebody = await openReader(first.address)
    const name = `${first.address.schema} ${leases.name}`
    const waits = somebody('SELECT pg_advisory_lock(hashtextextended($1, 0))', name)
    const isWaiting = async () => (await first.rows(`SELECT 1 ${OF_WORKERS} AND NOT granted`)).length
    await expect.poll(isWaiting).toBe(1)
    await breakConnections()
    await waits
    const renewed = leases.renew()
    await expect.poll(isWaiting).toBe(1)
    await somebody('SELECT pg_advisory_unlock(hashtextextended($1, 0))', name)
    await renewed

    expect(connections).toBe(2)
  })

  it('give a job back whose owner the server does not let say so', async () => {
    const second = await another()
    const lease = await taken(first)
    const kept = jobOf({ name: 'kept' })
    await first.store.acquire(kept)
    await first.rows(
      "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = '57014'; END $$",
    )
    await first.rows('CREATE TRIGGER refuse BEFORE UPDATE ON sync_jobs EXECUTE FUNCTION refuse()')
    await expect(first.store.release(lease)).rejects.toThrow(/statement_timeout/)
    await first.rows('DROP TRIGGER refuse ON sync_jobs')

    expect((await second.store.acquire(JOB)).heldBy).toBe(first.leases.name)
    await first.leases.renew()
    expect((await second.store.acquire(JOB)).heldBy).toBeUndefined()
    expect((await second.store.acquire(kept)).heldBy).toBe(first.leases.name)
  })

  it('keep a job that they take while they look for those that they do not have', async () => {
    let inBetween: (() => Promise<unknown>) | null = null
    const leases = await createOwnLeases((real) => ({
      ...real,
      async rows(text, values) {
        const act = text.includes('owner = $1') ? inBetween : null
        if (act) inBetween = null
        await act?.()
        return real.rows(text, values)
      },
    }))
    const [missed, other] = [namesOf(jobOf({ name: 'missed' })), namesOf(jobOf({ name: 'taken' }))]
    await expect(leases.take(missed, false, fail)).rejects.toThrow('no')
    inBetween = () => leases.take(other, false)
    await leases.renew()

    const owners = await first.rows('SELECT collection, owner FROM sync_jobs')
    expect(owners).toContainEqual({ collection: 'taken', owner: leases.name })
  })

  it('take their lock again before a job, though they were not told that its connection has ended', async () => {
    const { rows } = first
    const leases = await createOwnLeases((real) => ({ ...real, connect: () => real.connect(() => {}) }))
    await breakConnections()
    await expectLocks(1)
    await leases.take(namesOf(jobOf({ name: 'other' })), false)
    await expectLocks(2)
    await breakConnections()
    await expectLocks(1)
    await leases.renew()
    await expectLocks(2)

    expect(await rows("SELECT owner FROM sync_jobs WHERE collection = 'other'")).toEqual([
      { owner: leases.name },
    ])
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

  it('are known again that were cut off when another one started', async () => {
    const { far, cutOff, comeBack } = await openFar()
    const { server: own } = first
    const announce = () => announceDaemon(own, far.leases.name, '2026-11-20T00:00:00.000Z', 'one')
    const known = async () => readDaemons(own, await livingWorkers(own))
    await announce()
    await cutOff()
    await forgetDeadDaemons(own)
    const forgotten = await known()
    await comeBack()
    await announce()
    await announce()

    expect(forgotten).toEqual([])
    const running = { pid: expect.any(Number) as number, since: '2026-11-20T00:00:00.000Z', running: true }
    expect(await known()).toEqual([running])
    // What a dump brings back is another table, in which nobody has died.
    await cutOff()
    expect(await known()).toEqual([{ ...running, running: false }])
    await own.transaction((sql) =>
      sql.exec(`
        CREATE TABLE restored AS TABLE sync_settings;
        ALTER TABLE restored ADD PRIMARY KEY (name);
        DROP TABLE sync_settings;
        ALTER TABLE restored RENAME TO sync_settings
      `),
    )
    expect(await known()).toEqual([])
    await comeBack()
    await announce()
    expect(await known()).toEqual([running])
  })

  it('make a schema together when they start at once', async () => {
    const address = newSchema(server)
    const patience = { ...first.clock, after: afterRealTime, signal: new AbortController().signal }
    const servers = await Promise.all(Array.from({ length: 5 }, () => connectServer(address, patience)))
    try {
      await Promise.all(servers.map(migrate))
      const [made] = servers
      expect(await made?.rows("SELECT value FROM sync_settings WHERE name = 'version'")).toEqual([
        { value: String(LATEST_VERSION) },
      ])
    } finally {
      await Promise.all(servers.map((one) => one.close()))
    }
  })

  it('stop at the next page once a newer worker has changed the schema', async () => {
    const second = await another()
    const list = scriptedList({
      ids: [1, 2, 3, 4, 5, 6, 7],
      before: async (answer) => {
        if (answer === 2) await second.rows("UPDATE sync_settings SET value = '999' WHERE name = 'version'")
      },
    })

    const { error } = await runOnce(first, list)

    expect(error).toMatchObject({ name: 'MirrorLostError', code: 'DATABASE' })
    await expect(openPostgresMirror(first.address)).rejects.toMatchObject({ name: 'MirrorLostError' })
  })

  it('ask again for the hold of a token when they were halted while the last answer came', async () => {
    const second = await another()
    const { address, clock } = first
    const proxy = await startProxy(address.port)
    const halted = await openPostgresMirror({ ...address, port: proxy.port }, clock)
    const fingerprint = halted.tokens.fingerprint('token-1')
    await halted.tokens.useToken(ACME.id, fingerprint)
    let answers = 0
    proxy.alter((bytes) => {
      answers++
      clock.advance(60_000)
      return bytes
    })
    await halted.tokens.budgets.read(fingerprint)
    answers = 0
    await halted.tokens.holdOf(fingerprint).refresh?.()
    expect(answers).toBeGreaterThan(1)
    await halted.tokens.budgets.read(fingerprint)
    proxy.alter((bytes) => bytes)
    await second.tokens.hold([ACME.id], fingerprint, 'refused', new Date(clock.now()).toISOString())
    await halted.tokens.holdOf(fingerprint).refresh?.()

    expect(halted.tokens.holdOf(fingerprint).heldReason()).toBe('refused')
  })

  it('learn with a permit that another one holds the token', async () => {
    const second = await another()
    const fingerprint = first.tokens.fingerprint('token-1')
    await first.tokens.useToken(ACME.id, fingerprint)
    const { budgets, holdOf } = second.tokens
    const { version } = await budgets.read(fingerprint)
    const at = new Date(first.clock.now()).toISOString()
    await first.tokens.hold([ACME.id], fingerprint, 'refused (401)', at)

    const sent = { closedUntil: 0, known: '{}', waitingFor: null, waitingUntil: 0 }
    await budgets.compareAndSet(fingerprint, version, () => sent)

    const hold = holdOf(fingerprint)
    expect(hold.heldReason()).toBe('refused (401)')
    await hold.refresh?.()
    expect(hold.heldReason()).toBe('refused (401)')
  })
})
