import { beforeEach, describe, expect, it } from 'vitest'
import { identifyItems } from '../../src/sync/items.ts'
import { createPageTimes, writePage } from '../../src/sync/page-writer.ts'
import { createShareUse } from '../../src/sync/refresh/share.ts'
import { afterFullWalk, scopeText } from '../../src/sync/refresh/state.ts'
import { noTraffic } from '../../src/sync/run.ts'
import type { Store } from '../../src/sync/store.ts'
import type { WalkPlan } from '../../src/sync/types.ts'
import { fullWalk } from '../helpers/full-walk.ts'
import { jobOf } from '../helpers/jobs.ts'
import { pageOf } from '../helpers/pages.ts'
import { SYNC } from '../helpers/test-mirror.ts'
import { begin, leaseOf, type OpenedStore, type OpenRun, STEADY } from './stage.ts'

const JOB = jobOf()
const HOUR = 3_600_000

const STATE = afterFullWalk(null, fullWalk({ scope: scopeText(JOB) }), 'first')

/** What each store has to keep of the promises of the port about refreshes. */
export function describeRefreshes(name: string, openStore: () => Promise<OpenedStore>): void {
  describe(`refreshes of ${name}`, () => {
    let opened: OpenedStore
    let store: Store

    beforeEach(async () => {
      opened = await openStore()
      store = opened.store
    })

    /** A store may refuse leases that were taken before this one. */
    async function freeLease() {
      const lease = await leaseOf(store)
      await store.release(lease)
      return lease
    }

    /** A walk with one page that holds these texts, still open. */
    async function openWalk(texts: readonly string[], plan: Partial<WalkPlan> = {}): Promise<OpenRun> {
      const open = await begin(opened, JOB, { plan: { ...SYNC, ...plan } })
      await open.page(...texts)
      return open
    }

    /** `within`: the run whose walk pauses for it. */
    async function openRefresh(within: Pick<OpenRun, 'run'> | null) {
      const lease = await freeLease()
      const run = { id: await store.beginRefresh(lease, STATE, within?.run ?? null), traffic: noTraffic() }
      const finish: OpenRun['finish'] = (status, code) =>
        store.finishRun(run, { status, errorCode: code ?? null, errorMessage: code ?? null })
      return { lease, run, finish }
    }

    /** A refresh of one page that holds these texts, to its end. */
    async function refreshed(within: Pick<OpenRun, 'run'> | null, ...texts: string[]) {
      const { lease, run, finish } = await openRefresh(within)
      const page = pageOf(texts, { number: 7, next: null, total: null, lastPage: null })
      const at = createPageTimes(lease, opened.clock.now).ofRefresh()
      const items = identifyItems(JOB, page)
      const committed = await writePage(store, lease, run, { page, items, at, answer: null })
      return { committed, record: await finish('succeeded') }
    }

    // W, P and R: a walk, a backfill of a part, and a refresh; + succeeded, - failed, ~ interrupted, 0 refused, . only begun. One of them an hour; W( and
    // )+ begin and end a walk, between whose pages others stand.
    it.each<[runs: string, failing: string | null, last: string]>([
      ['W- W- W-', 'since 1: W3', 'failed: W3'],
      ['W- W.', 'since 1: W1', 'running'],
      ['W- W~ W0 R~', 'since 1: W1', 'interrupted: W2'],
      ['W- R- R+', 'since 1: W1', 'failed: W1'],
      ['W+ R- R.', 'since 2: R2', 'succeeded'],
      ['W+ R- R+', null, 'succeeded'],
      ['W+ R- W- R+', 'since 2: W3', 'failed: W3'],
      ['W- P+', 'since 1: W1', 'succeeded'],
      ['W- P- W+', null, 'succeeded'],
      ['P- P+', null, 'succeeded'],
      ['P- R+', null, 'failed: W1'],
      ['P- W-', 'since 1: W2', 'failed: W2'],
      ['W. R+', null, 'interrupted: INTERRUPTED'],
      ['W+ W( R-', 'since 3: R3', 'running'],
      ['W+ W( R- )+', null, 'succeeded'],
      ['W+ W( R- )-', 'since 3: W4', 'failed: W4'],
      ['W+ W( R- )~', 'since 3: R3', 'interrupted: W4'],
      ['W+ W( R- )+ R-', 'since 5: R5', 'failed: R5'],
    ])(
      'after %s the job is failing %s, from the end of a run that failed until one succeeds; its last run: %s',
      async (runs, failing, last) => {
        const ends = { '+': 'succeeded', '-': 'failed', '~': 'interrupted', '0': 'refused' } as const
        const began = opened.clock.now()
        let within: Pick<OpenRun, 'run' | 'finish'> | null = null
        for (const [index, [kind, end = '']] of runs.split(' ').entries()) {
          opened.clock.advance(HOUR)
          const plan = kind === 'P' ? ({ origin: 'backfill', kind: 'partial' } as const) : {}
          const isRefresh = kind === 'R'
          const one: Pick<OpenRun, 'run' | 'finish'> = isRefresh
            ? await openRefresh(within)
            : (kind === ')' && within) || (await openWalk(['{"id":1}'], plan))
          if (!isRefresh) within = end === '(' ? one : null
          const status = ends[end as keyof typeof ends]
          if (status === undefined) continue
          await one.finish(status, status === 'succeeded' ? null : `${isRefresh ? 'R' : 'W'}${index + 1}`)
          if (status === 'succeeded') await store.prune(JOB)
        }

        const row = await opened.status()
        const since = (Date.parse(row?.failing_since ?? '') - began) / HOUR
        expect(row?.failing_since ? `since ${since}: ${row.failing_code}` : null).toBe(failing)
        const [shown] = await opened.rows("SELECT * FROM sync_status WHERE organization = 'acme'")
        for (const line of [row, shown])
          expect([line?.last_run_status, line?.error_code ?? []].flat().join(': ')).toBe(last)
      },
    )

    it('add and change rows, keep versions, leave equal rows alone, and count the rows that were ever added', async () => {
      const { walk } = await openWalk(['{"id":1,"a":1}', '{"id":2,"a":1}'])

      const { committed, record } = await refreshed(null, '{"id":1,"a":2}', '{"a":1,"id":2}', '{"id":3}')

      expect(await opened.live()).toEqual({ 1: '{"id":1,"a":2}', 2: '{"id":2,"a":1}', 3: '{"id":3}' })
      expect(await opened.history()).toEqual([['1', 'changed']])
      expect([committed.rowsAdded, (await freeLease()).rowsAdded]).toEqual([3, 3])
      expect(record).toMatchObject({ pages: 1, rowsSeen: 3, rowsAdded: 1, rowsChanged: 1, rowsRemoved: 0 })
      expect(await store.readLedger(walk.id, 1)).toEqual([])
    })

    it('count what they see as seen, for each full walk that is open', async () => {
      await openWalk(['{"id":1}', '{"id":2}', '{"id":3}'])
      const { walk, ...open } = await openWalk(['{"id":1}'])
      await refreshed(open, '{"id":2}')

      const resumed = await begin(opened, JOB, { resume: walk.id })

      expect(await resumed.missing(true)).toEqual({ removable: 1, held: 0, live: 3 })
    })

    it('make a row that a walk has missed missed no longer', async () => {
      await openWalk(['{"id":1}', '{"id":2}'])
      const { missing, close } = await openWalk(['{"id":1}'])
      expect((await missing(true)).removable).toBe(1)
      await close('hold')

      await refreshed(null, '{"id":2}')
      const next = await openWalk(['{"id":1}'])

      expect(await next.missing()).toEqual({ removable: 0, held: 0, live: 2 })
    })

    it('leave a reject that they meet first new to the next full walk', async () => {
      await refreshed(null, '{"no":1}')

      const first = await openWalk(['{"no":1}'])
      const second = await openWalk(['{"no":1}'])

      const newRejects = []
      for (const { walk } of [first, second])
        newRejects.push((await begin(opened, JOB, { resume: walk.id })).walk.newRejects)
      expect(newRejects).toEqual([1, 0])
    })

    it('keep what the next one starts from, which a complete full walk keeps, too', async () => {
      const { lease, close } = await openWalk(['{"id":1}'])
      expect(lease).toMatchObject({ refresh: null, rowsAdded: 1 })

      await close('none', STEADY, STATE)
      expect((await freeLease()).refresh).toEqual(STATE)

      const later = { ...STATE, settledAt: STATE.settledAt + 1, freshAsOf: STATE.freshAsOf + 1 }
      await store.saveRefresh(await freeLease(), later)
      expect((await freeLease()).refresh).toEqual(later)
      expect(await store.refreshes()).toEqual([
        { organizationId: JOB.organization.id, collection: 'orders', state: later },
      ])
    })

    it('share what they pay by compare-and-set, each budget its own', async () => {
      const share = { budgetKey: 'token', at: Date.UTC(2026, 10, 1), level: 2.5, version: 1 }
      const next = { ...share, at: share.at + 1, level: 0, version: 2 }

      const written = []
      for (const one of [next, share, share, { ...share, budgetKey: 'all' }, next, next])
        written.push(await store.writeShare(one))

      expect(written).toEqual([false, true, false, true, true, false])
      expect(await store.shares(['token', 'other'])).toEqual([next])
      expect(await store.shares(['token', 'all'])).toHaveLength(2)
      expect(await store.shares([])).toEqual([])
    })

    it('charge each request once, though many do at once', async () => {
      const uses = Array.from({ length: 8 }, () =>
        createShareUse(store, 'token', { limit: () => 60, percent: 10 }, () => 0),
      )

      await Promise.all(uses.map((use) => use.take(() => true, 3)))

      expect(await store.shares(['token'])).toMatchObject([{ level: 24, version: 8 }])
    })

    it('leave no run behind if they found nothing', async () => {
      await refreshed(null, '{"id":1}')
      await refreshed(null, '{"id":1}')
      await store.prune(JOB)

      const runs = await opened.rows('SELECT CAST(rows_added AS TEXT) AS added FROM sync_runs')
      expect(runs).toEqual([{ added: '1' }])
    })
  })
}
