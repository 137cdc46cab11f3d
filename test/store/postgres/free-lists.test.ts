import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { takeFreeLists } from '../../../src/store/postgres/leases.ts'
import { connectServer } from '../../../src/store/postgres/server/server.ts'
import { jobOf } from '../../helpers/jobs.ts'
import { emptySchema } from '../../helpers/kept-schema.ts'
import { openDatabase } from '../../helpers/postgres.ts'
import { openPostgresMirror, type PostgresMirror } from '../../helpers/postgres-mirror.ts'
import { afterRealTime } from '../../helpers/real-time.ts'

const server = await openDatabase()

const SECOND = 1000
const NOW = Date.UTC(2026, 10, 20)

const listOf = (number: number) => ({ organizationId: `o${number}`, collection: 'orders' })
const lists = (count: number) => Array.from({ length: count }, (_, index) => listOf(index))

describe.skipIf(server.missing !== null)('workers that refresh the lists of one mirror', () => {
  let first: PostgresMirror
  beforeEach(async () => {
    first = await openPostgresMirror(await emptySchema(server))
    await first.tokens.register(
      lists(60).map(({ organizationId: id }) => ({ id, name: id, collections: ['orders'] })),
    )
  })

  it('take each list once, though all of them ask in the same moment, and a few at once', async () => {
    const workers = await Promise.all(
      [1, 2, 3].map(async () => {
        const { now, sleep } = { now: Date.now, sleep: async () => {} }
        const patience = { now, sleep, after: afterRealTime, signal: new AbortController().signal }
        const own = await connectServer(first.address, patience)
        onTestFinished(() => own.close())
        return own
      }),
    )
    const taken: { organizationId: string }[] = []
    let most = 0
    for (let round = 0; round < 20; round++) {
      const all = await Promise.all(workers.map((own) => takeFreeLists(own, lists(50), NOW)))
      most = Math.max(most, ...all.map(({ length }) => length))
      taken.push(...all.flat())
    }

    const names = taken.map(({ organizationId }) => organizationId)
    expect(names.toSorted()).toEqual(
      lists(50)
        .map(({ organizationId }) => organizationId)
        .toSorted(),
    )
    expect(most).toBe(8)
  })

  it('leave a list that was taken to its worker for ten seconds, whatever the clock says then', async () => {
    const taken: unknown[][] = []
    for (const after of [0, 10 * SECOND - 1, 10 * SECOND, -3600 * SECOND])
      taken.push(await takeFreeLists(first.server, [listOf(0)], NOW + after))

    expect(taken.map(({ length }) => length)).toEqual([1, 0, 1, 1])
  })

  it('leave a list to the process that reads it', async () => {
    const job = jobOf()
    const acme = { organizationId: job.organization.id, collection: 'orders' }
    const { lease } = await first.store.acquire(job)
    if (!lease) throw new Error('not acquired')
    const owned = await takeFreeLists(first.server, [acme, listOf(1)], NOW)
    await first.store.release(lease)
    const free = await takeFreeLists(first.server, [acme], NOW)

    expect([owned, free]).toEqual([[listOf(1)], [acme]])
  })

  it('refresh a list whose reader died', async () => {
    const job = jobOf()
    await first.store.acquire(job)
    const other = await openPostgresMirror(first.address)
    const acme = { organizationId: job.organization.id, collection: 'orders' }
    await first.close()

    await expect.poll(() => takeFreeLists(other.server, [acme], NOW)).toEqual([acme])
  })

  it('wait for no list whose row another one is writing', async () => {
    const taken = await first.server.transaction(async (sql) => {
      await sql.rows("SELECT 1 FROM sync_jobs WHERE organization_id = 'o0' FOR NO KEY UPDATE")
      return takeFreeLists(first.server, lists(2), NOW)
    })

    expect(taken).toEqual([listOf(1)])
  })
})
