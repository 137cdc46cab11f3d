import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { createRefreshTurns } from '../../../src/store/postgres/refresh-turns.ts'
import { connectServer, type Server } from '../../../src/store/postgres/server/server.ts'
import type { DueRefresh } from '../../../src/sync/refresh-turns.ts'
import { jobOf } from '../../helpers/jobs.ts'
import { newSchema, openDatabase, openReader } from '../../helpers/postgres.ts'
import { openPostgresMirror, type PostgresMirror } from '../../helpers/postgres-mirror.ts'
import { afterRealTime } from '../../helpers/real-time.ts'

const server = await openDatabase()
if (server.missing !== null) console.warn(server.missing)

const SECOND = 1000
const NOW = Date.UTC(2026, 10, 20)
const AT_ONCE = 60 * SECOND
const INTERVAL = 600 * SECOND

const listOf = (number: number, more: Partial<DueRefresh> = {}): DueRefresh => ({
  organizationId: `o${number}`,
  collection: 'orders',
  budget: 'token',
  needs: 20 * SECOND,
  interval: INTERVAL,
  ...more,
})
const lists = (count: number, more: Partial<DueRefresh> = {}) =>
  Array.from({ length: count }, (_, index) => listOf(index, more))
/** By the times that a test says. */
const turnsOf = (own: Server) => createRefreshTurns(own, AT_ONCE, 'caller')
const names = (taken: readonly DueRefresh[]) => taken.map(({ organizationId }) => organizationId)

describe.skipIf(server.missing !== null)('workers that refresh the lists of one mirror', () => {
  let first: PostgresMirror
  beforeEach(async () => {
    first = await openPostgresMirror(newSchema(server))
    await first.tokens.register(
      Array.from({ length: 60 }, (_, index) => ({
        id: `o${index}`,
        name: `o${index}`,
        collections: ['orders'],
      })),
    )
  })

  const beginRun = (id: string, at: number) =>
    first.rows(
      "INSERT INTO sync_runs (organization_id, collection, trigger, status, started_at) VALUES ($1, 'orders', 'refresh', 'failed', $2)",
      id,
      new Date(at).toISOString(),
    )

  it('take a few lists at once, and then one after the other as the share has room, whoever asks', async () => {
    const workers = [turnsOf(first.server), turnsOf(first.server)]
    const due = lists(7)
    const begins: [number, string][] = []
    for (let second = 0; second <= 60; second += 5) {
      for (const worker of workers) {
        const { taken } = await worker.take(due, NOW + second * SECOND, false)
        begins.push(...names(taken).map((name): [number, string] => [second, name]))
      }
    }

    expect(begins).toEqual([0, 0, 0, 0, 20, 40, 60].map((second, index) => [second, `o${index}`]))
  })

  it('take each list once, though all of them ask in the same moment', async () => {
    const [a, b, c] = await Promise.all(
      [1, 2, 3].map(async () => {
        const { now, sleep } = { now: Date.now, sleep: async () => {} }
        const patience = { now, sleep, after: afterRealTime, signal: new AbortController().signal }
        const own = await connectServer(first.address, patience)
        onTestFinished(() => own.close())
        return turnsOf(own)
      }),
    )
    if (!a || !b || !c) throw new Error('no workers')
    const due = lists(50, { needs: SECOND })
    const taken: string[] = []
    for (let round = 0; round < 20; round++) {
      const all = await Promise.all([a, b, c].map((worker) => worker.take(due, NOW, false)))
      taken.push(...all.flatMap((one) => names(one.taken)))
    }

    expect(taken.toSorted()).toEqual(names(due).toSorted())
    expect(
      await first.rows("SELECT refreshes_until - refreshes_at = '50 s' AS used FROM sync_gates"),
    ).toEqual([{ used: true }])
  })

  it('leave a list that was taken to its worker until its next refresh is due', async () => {
    const turns = turnsOf(first.server)
    const take = (after: number) => turns.take([listOf(0)], NOW + after, false)
    await take(0)
    await beginRun('o0', NOW + SECOND)
    const before = await take(INTERVAL - 1)
    const again = await take(INTERVAL)

    expect(before).toMatchObject({ taken: [], others: [listOf(0)] })
    expect(again).toMatchObject({ taken: [listOf(0)], others: [] })
  })

  it('leave a list to the process that reads it, which takes the share of its refreshes itself', async () => {
    const job = jobOf()
    const acme = listOf(0, { organizationId: job.organization.id, needs: 90 * SECOND })
    const turns = turnsOf(first.server)
    const { lease } = await first.store.acquire(job)
    if (!lease) throw new Error('not acquired')
    const owned = await turns.take([acme, listOf(1)], NOW, false)
    const own = await turns.take([acme], NOW + SECOND, true)
    const full = await turns.take([acme], NOW + 2 * SECOND, true)
    await first.store.release(lease)
    const free = await turns.take([acme], NOW + INTERVAL + SECOND, false)

    expect(owned).toMatchObject({ taken: [listOf(1)], others: [acme] })
    expect(own.taken).toEqual([acme])
    expect(full).toMatchObject({ taken: [], freeAt: new Map([['token', NOW + 50 * SECOND]]) })
    expect(free.taken).toEqual([acme])
  })

  it('refresh a list whose reader died', async () => {
    const job = jobOf()
    await first.store.acquire(job)
    const turns = turnsOf((await openPostgresMirror(first.address)).server)
    const acme = listOf(0, { organizationId: job.organization.id })
    await first.close()

    await expect.poll(async () => (await turns.take([acme], NOW, false)).taken).toEqual([acme])
  })

  it('wait for no list whose row another one is writing', async () => {
    const turns = turnsOf(first.server)
    const taken = await first.server.transaction(async (sql) => {
      await sql.rows("SELECT 1 FROM sync_jobs WHERE organization_id = 'o0' FOR NO KEY UPDATE")
      return turns.take(lists(2), NOW, false)
    })

    expect(taken).toMatchObject({ taken: [listOf(1)], others: [listOf(0)] })
  })

  it('each budget has its own pace, and one that was forgotten begins anew', async () => {
    const turns = turnsOf(first.server)
    const [one, two] = [listOf(1, { budget: 'one', needs: 1e9 }), listOf(2, { budget: 'two' })]
    const three = listOf(3, { budget: 'one' })
    const taken = await turns.take([one, two, three], NOW, false)
    await first.server.rows("DELETE FROM sync_gates WHERE scope = 'one'")
    const missed = await turns.take([three], NOW, false)
    const anew = await turns.take([three], NOW, false)

    expect(taken.taken).toEqual([one, two])
    expect(taken.freeAt.get('one')).toBe(NOW + 1e9 - AT_ONCE)
    expect(missed).toMatchObject({ taken: [], others: [] })
    expect(anew.taken).toEqual([three])
  })

  it('a clock that was set back delays no refresh for long', async () => {
    const turns = turnsOf(first.server)
    await turns.take([listOf(0, { needs: 90 * SECOND })], NOW, false)
    const hourAgo = NOW - 3600 * SECOND
    const full = await turns.take(lists(2), hourAgo, false)
    const later = await turns.take(lists(2), hourAgo + 30 * SECOND, false)

    expect(full).toMatchObject({ taken: [], others: [], freeAt: new Map([['token', hourAgo + 30 * SECOND]]) })
    expect(names(later.taken)).toEqual(['o0'])
  })

  it('take no more than the share though a statement waited, and its time is an old one', async () => {
    const turns = createRefreshTurns(first.server, AT_ONCE)
    const take = (after: number) => turns.take(lists(60), Date.now() + after, false)
    const taken = [await take(0), await take(-120 * SECOND), await take(0), await take(-120 * SECOND)]

    expect(taken.map((one) => one.taken.length)).toEqual([4, 0, 0, 0])
    expect(
      await first.rows(
        'SELECT DISTINCT refresh_turn = refreshes_at AS same FROM sync_jobs, sync_gates WHERE refresh_turn IS NOT NULL',
      ),
    ).toEqual([{ same: true }])
  })

  it('take the time once they have the budget, and not when they asked for it', async () => {
    const turns = createRefreshTurns(first.server, AT_ONCE)
    await turns.take([listOf(0)], Date.now(), false)
    const other = await openReader(first.address)
    await other('BEGIN')
    await other('SELECT 1 FROM sync_gates FOR UPDATE')
    const waiting = turns.take([listOf(1, { needs: 0 })], Date.now(), false)
    const blocked = "SELECT pid FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"
    await expect.poll(async () => (await first.rows(blocked)).length).toBe(1)
    const [written] = await other(
      "UPDATE sync_gates SET refreshes_at = clock_timestamp(), refreshes_until = clock_timestamp() + '1 hour' RETURNING refreshes_at, refreshes_until",
    )
    await other('COMMIT')

    expect((await waiting).taken).toEqual([])
    expect(await first.rows('SELECT refreshes_at, refreshes_until FROM sync_gates')).toEqual([written])
  })

  it('take a list again whose turn was lost, but none that was tried since', async () => {
    const day = 86_400 * SECOND
    const turns = turnsOf(first.server)
    const [lost, tried] = [listOf(0, { interval: day }), listOf(1, { interval: day })]
    const take = (after: number) => turns.take([lost, tried], NOW + after, false)
    await take(0)
    await beginRun('o1', NOW + SECOND)
    const before = await take(180 * SECOND - 1)
    const after = await take(180 * SECOND)
    const again = await take(180 * SECOND + 1)

    expect(before.taken).toEqual([])
    expect(after).toMatchObject({ taken: [lost], others: [tried] })
    expect(again).toMatchObject({ taken: [], others: [lost, tried] })
  })

  it('leaves the budget of requests as it is', async () => {
    const turns = turnsOf(first.server)
    await turns.take([listOf(0)], NOW, false)
    const { version, ...budget } = await first.tokens.budgets.read('token')
    await turns.take([listOf(1)], NOW, false)
    const written = await first.tokens.budgets.compareAndSet('token', version, () => ({
      closedUntil: 0,
      known: '{}',
      waitingFor: null,
      waitingUntil: 0,
    }))

    expect(budget).toEqual({ closedUntil: 0, known: null })
    expect(written).not.toBeNull()
  })
})
