import { beforeEach, describe, expect, it } from 'vitest'
import { identifyItems } from '../../src/sync/items.ts'
import { compareWithStore, createPageTimes } from '../../src/sync/page-writer.ts'
import { createShareUse } from '../../src/sync/refresh/share.ts'
import { afterFullWalk, type RefreshState, scopeText } from '../../src/sync/refresh/state.ts'
import { noTraffic } from '../../src/sync/run.ts'
import type { Lease, Run, Store, Walk } from '../../src/sync/store.ts'
import type { WalkPlan } from '../../src/sync/types.ts'
import { jobOf } from '../helpers/jobs.ts'
import { pageOf } from '../helpers/pages.ts'
import { begin, type OpenedStore, type OpenRun, PLAN } from './contract.ts'

const JOB = jobOf()

/** As the first complete full walk leaves it. */
const STATE: RefreshState = afterFullWalk(
  null,
  {
    scope: scopeText(JOB),
    startedAt: Date.UTC(2026, 10, 1),
    endedAt: Date.UTC(2026, 10, 1, 1),
    lastPage: 40,
    totals: { first: 1000, last: 1000 },
    coverage: 'steady',
    grewAt: null,
    rowsAdded: { first: 0, last: 1000 },
  },
  'first',
)

/** A store may refuse leases that were taken before this one. */
async function leaseOf(store: Store): Promise<Lease> {
  const { lease } = await store.acquire(JOB)
  if (!lease) throw new Error('another process has the job')
  await store.release(lease)
  return lease
}

/** A walk with one page that holds these texts, still open. */
async function openWalk(
  store: Store,
  texts: readonly string[],
  plan: Partial<WalkPlan> = {},
): Promise<OpenRun> {
  const open = await begin(store, JOB, { plan: { ...PLAN, ...plan } })
  await open.page(...texts)
  return open
}

async function openRefresh(store: Store, within: Run | null) {
  const lease = await leaseOf(store)
  return { lease, run: { id: await store.beginRefresh(lease, STATE, within), traffic: noTraffic() } }
}

type OpenRefresh = Awaited<ReturnType<typeof openRefresh>>

/** Writes one page of a refresh. */
async function refreshPage(store: Store, { lease, run }: OpenRefresh, ...texts: string[]) {
  const page = pageOf(texts, { number: 7, next: null, total: null, lastPage: null })
  const { changes } = await compareWithStore(store, JOB, page, identifyItems(JOB, page))
  const at = createPageTimes(lease, Date.now).ofRefresh()
  return store.commit(lease, { changes, run, at, answer: null })
}

/** A refresh of one page that holds these texts, to its end. */
async function refreshed(store: Store, within: Run | null, ...texts: string[]) {
  const open = await openRefresh(store, within)
  const committed = await refreshPage(store, open, ...texts)
  const succeeded = { status: 'succeeded' as const, errorCode: null, errorMessage: null }
  return { committed, record: await store.finishRun(open.run, succeeded) }
}

/** What each store has to keep of the promises of the port about refreshes. */
export function describeRefreshes(name: string, openStore: () => Promise<OpenedStore>): void {
  describe(`refreshes of ${name}`, () => {
    let opened: OpenedStore
    let store: Store

    beforeEach(async () => {
      opened = await openStore()
      store = opened.store
    })

    const HOUR = 3_600_000
    const PART = { origin: 'backfill', kind: 'partial' } as const

    // W, P and R: a walk, a backfill of a part, and a refresh; + succeeded, - failed, ~ interrupted, 0 refused, . only begun.
    it.each<[runs: string, failing: [by: string, hours: number, code: string] | null]>([
      ['W+', null],
      ['W-', ['walk', 1, 'W1']],
      ['W- W- W-', ['walk', 1, 'W3']],
      ['W- W+', null],
      ['W- W.', ['walk', 1, 'W1']],
      ['W- W~ W0 R~', ['walk', 1, 'W1']],
      ['W- R+', ['walk', 1, 'W1']],
      ['W- R-', ['walk', 1, 'W1']],
      ['W+ R-', ['refresh', 2, 'R2']],
      ['W+ R- R.', ['refresh', 2, 'R2']],
      ['W+ R- R+', null],
      ['W+ R- W-', ['walk', 2, 'W3']],
      ['W+ R- W- R+', ['walk', 2, 'W3']],
      ['W+ R- W+', null],
      ['W- P+', ['walk', 1, 'W1']],
      ['W- P- W+', null],
      ['P- P+', null],
      ['P- R+', null],
      ['P- W-', ['walk', 1, 'W2']],
    ])('is failing from the end of a run that failed until one succeeds: %s', async (runs, failing) => {
      const began = new Date((await openWalk(store, ['{"id":1}'])).walk.startedAt).getTime()
      const ends = { '+': 'succeeded', '-': 'failed', '~': 'interrupted', '0': 'refused' } as const
      for (const [index, [kind, end = '']] of runs.split(' ').entries()) {
        opened.advance(HOUR)
        const { run } =
          kind === 'R'
            ? await openRefresh(store, null)
            : await openWalk(store, ['{"id":1}'], kind === 'P' ? PART : undefined)
        if (end === '.') continue
        const status = ends[end as keyof typeof ends]
        const code = status === 'succeeded' ? null : `${kind}${index + 1}`
        await store.finishRun(run, { status, errorCode: code, errorMessage: code })
      }

      const at = (hours: number) => new Date(began + hours * HOUR).toISOString()
      expect(await opened.failing()).toEqual(failing && [failing[0], at(failing[1]), failing[2]])
      expect((await opened.status())?.failing_code).toEqual(failing?.[2] ?? null)
    })

    // As above; W( and )+ begin and end a walk, between whose pages others stand.
    it.each<[runs: string, last: [status: string, code: string | null]]>([
      ['W+ R+', ['succeeded', null]],
      ['W- R+', ['failed', 'W1']],
      ['W+ R-', ['failed', 'R2']],
      ['W+ R- R.', ['succeeded', null]],
      ['W+ R- R+', ['succeeded', null]],
      ['W- R- R+', ['failed', 'W1']],
      ['W+ W( R-', ['running', null]],
      ['W+ W( R- )+', ['succeeded', null]],
      ['W+ W( R- )-', ['failed', 'W4']],
      ['W+ W( R- )~', ['interrupted', 'W4']],
      ['W+ W( R- )+ R-', ['failed', 'R5']],
    ])('hide no walk, unless they failed after its end: %s', async (runs, last) => {
      const ends = { '+': 'succeeded', '-': 'failed', '~': 'interrupted' } as const
      let walk: { lease: Lease; run: Run } | null = null
      for (const [index, [kind, end = '']] of runs.split(' ').entries()) {
        opened.advance(HOUR)
        const begun: { lease: Lease; run: Run } =
          kind === 'W'
            ? await openWalk(store, ['{"id":1}'])
            : kind === 'R'
              ? await openRefresh(store, walk?.run ?? null)
              : (walk ?? (await openWalk(store, [])))
        walk = end === '(' ? begun : kind === ')' ? null : walk
        const status = ends[end as keyof typeof ends]
        if (status === undefined) continue
        const code = status === 'succeeded' ? null : `${kind === 'R' ? 'R' : 'W'}${index + 1}`
        await store.finishRun(begun.run, { status, errorCode: code, errorMessage: code })
        if (status === 'succeeded') await store.prune(JOB)
      }

      expect(await opened.lastRun()).toEqual(last)
      const row = await opened.status()
      expect([row?.last_run_status, row?.error_code]).toEqual(last)
    })

    it('add and change rows, keep versions, and count the rows that were ever added', async () => {
      const { walk } = await openWalk(store, ['{"id":1,"a":1}', '{"id":2}'])

      const { committed, record } = await refreshed(store, null, '{"id":1,"a":2}', '{"id":3}')

      expect(await opened.live(JOB)).toEqual({ 1: '{"id":1,"a":2}', 2: '{"id":2}', 3: '{"id":3}' })
      expect(await opened.history(JOB)).toEqual([['1', 'changed']])
      expect(committed.rowsAdded).toBe(3)
      expect((await leaseOf(store)).rowsAdded).toBe(3)
      expect(record).toMatchObject({ pages: 1, rowsSeen: 2, rowsAdded: 1, rowsChanged: 1, rowsRemoved: 0 })
      expect(await store.readLedger(walk.id, 1)).toEqual([])
    })

    it('count what they see as seen, for each full walk that is open', async () => {
      await openWalk(store, ['{"id":1}', '{"id":2}', '{"id":3}'])
      const { walk, run } = await openWalk(store, ['{"id":1}'])
      await refreshed(store, run, '{"id":2}')

      const rule = { walkId: walk.id, keyed: 1, isSeen: (id: string) => id === '1', atOnce: true }
      const missing = await store.findMissing(await leaseOf(store), rule)

      expect(missing).toEqual({ removable: 1, held: 0, live: 3 })
    })

    it('make a row that a walk has missed missed no longer', async () => {
      await openWalk(store, ['{"id":1}', '{"id":2}'])
      const { lease, walk, run, missing } = await openWalk(store, ['{"id":1}'])
      expect((await missing(true)).removable).toBe(1)
      const outcome = { coverage: 'steady' as const, untrusted: null }
      await store.closeWalk(lease, { walk, run, outcome, removals: { hold: 'brake' }, refresh: STATE })

      await refreshed(store, null, '{"id":2}')
      const next = await openWalk(store, ['{"id":1}'])

      expect(await next.missing()).toEqual({ removable: 0, held: 0, live: 2 })
    })

    it('leave a reject that they meet first new to the next full walk', async () => {
      await refreshed(store, null, '{"no":1}')

      const first = await openWalk(store, ['{"no":1}'])
      const second = await openWalk(store, ['{"no":1}'])
      const of = async ({ id: resume }: Walk) => (await begin(store, JOB, { resume })).walk.newRejects

      expect([await of(first.walk), await of(second.walk)]).toEqual([1, 0])
    })

    it('keep what the next one starts from, which a complete full walk keeps, too', async () => {
      expect(await leaseOf(store)).toMatchObject({ refresh: null, rowsAdded: 0 })
      const { lease, walk, run } = await openWalk(store, ['{"id":1}'])
      const outcome = { coverage: 'steady' as const, untrusted: null }

      await store.closeWalk(lease, { walk, run, outcome, removals: 'none', refresh: STATE })
      expect((await leaseOf(store)).refresh).toEqual(STATE)

      const later = { ...STATE, settledAt: STATE.settledAt + 1, freshAsOf: STATE.freshAsOf + 1 }
      await store.saveRefresh(await leaseOf(store), later)
      expect((await leaseOf(store)).refresh).toEqual(later)
      expect(await store.refreshes()).toEqual([
        { organizationId: JOB.organization.id, collection: 'orders', state: later },
      ])
    })

    it('share what they pay by compare-and-set, each budget its own', async () => {
      const share = { budgetKey: 'token', at: Date.UTC(2026, 10, 1), level: 2.5, version: 1 }
      const next = { ...share, at: share.at + 1, level: 0, version: 2 }

      const written = [
        await store.writeShare(next),
        await store.writeShare(share),
        await store.writeShare(share),
        await store.writeShare({ ...share, budgetKey: 'all' }),
        await store.writeShare(next),
        await store.writeShare(next),
      ]

      expect(written).toEqual([false, true, false, true, true, false])
      expect(await store.shares(['token', 'other'])).toEqual([next])
      expect(await store.shares(['token', 'all'])).toHaveLength(2)
      expect(await store.shares([])).toEqual([])
    })

    it('charge each request once, though many do at once', async () => {
      const uses = Array.from({ length: 8 }, () =>
        createShareUse(store, 'token', { limit: () => 60, percent: 10 }, () => 0),
      )

      await Promise.all(uses.map((use) => use.take(() => ({ cost: 3 }))))

      expect(await store.shares(['token'])).toMatchObject([{ level: 24, version: 8 }])
    })

    it('between the pages of a walk leave its run open; others close the runs of dead processes', async () => {
      const { run } = await openWalk(store, ['{"id":1}'])

      await refreshed(store, run, '{"id":1}')
      expect((await opened.runs()).map(({ status }) => status)).toEqual(['running', 'succeeded'])

      await refreshed(store, null, '{"id":1}')
      expect((await opened.runs()).map(({ status }) => status)).toEqual([
        'interrupted',
        'succeeded',
        'succeeded',
      ])
    })

    it('leave no run behind if they found nothing', async () => {
      await refreshed(store, null, '{"id":1}')
      await refreshed(store, null, '{"id":1}')
      await store.prune(JOB)

      const runs = await opened.rows('SELECT CAST(rows_added AS TEXT) AS added FROM sync_runs')
      expect(runs).toEqual([{ added: '1' }])
    })
  })
}
