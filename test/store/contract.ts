import { beforeEach, describe, expect, it } from 'vitest'
import { identifyItems } from '../../src/sync/items.ts'
import type { MissingCounts, Removals, Store } from '../../src/sync/store.ts'
import type { Collection, Job } from '../../src/sync/types.ts'
import { START, timeAt } from '../helpers/clock.ts'
import { GLOBEX, jobOf } from '../helpers/jobs.ts'
import { pageOf } from '../helpers/pages.ts'
import { RULES, SYNC } from '../helpers/test-mirror.ts'
import { begin, leaseOf, ledgerOf, type OpenedStore, STEADY } from './stage.ts'

// What `sync` may rely on in any store. Each store runs these tests on itself; they look at it through the port, and through
// what people read of it.

const JOB = jobOf()
const HOUR = 3_600_000
const DAY = 24 * HOUR
const PARTIAL = { plan: { ...SYNC, origin: 'backfill', kind: 'partial' } } as const

/** The items with these ids, of one character each. */
const itemsOf = (ids: string) => Array.from(ids, (id) => `{"id":${id}}`)

const TEXTS = itemsOf('123')

/** What each store has to keep of the promises of the port. */
export function describeStore(name: string, openStore: () => Promise<OpenedStore>): void {
  describe(`the store on ${name}`, () => {
    let opened: OpenedStore
    let store: Store
    beforeEach(async () => {
      opened = await openStore()
      store = opened.store
    })

    interface Walking {
      job?: Job
      removals?: Removals
      /** The list came in one answer. */
      atOnce?: boolean
    }

    /** A complete, trusted walk over one page. Returns what it found missing, and what is held back after it. */
    async function walked(texts: readonly string[], { job = JOB, removals, atOnce }: Walking = {}) {
      const open = await begin(opened, job)
      await open.page(...texts)
      const missing = await open.missing(atOnce)
      const { heldBack } = await open.close(removals)
      return { missing, heldBack }
    }

    /** The same, which removes at once what it does not see. */
    const walkOf = (texts: readonly string[], job = JOB) =>
      walked(texts, { job, removals: 'remove', atOnce: true })

    describe('a lease', () => {
      it('is of one organization, and tells others who has it, and whether only to compare the list', async () => {
        const other = await opened.other()
        const sync = await leaseOf(store)

        for (const one of [GLOBEX, { id: 'i', name: 'initech' }]) await leaseOf(other, jobOf({}, one))
        expect(await other.acquire(JOB)).toEqual({ heldBy: expect.any(String) })
        await store.release(sync)
        const { lease } = await store.acquire(JOB, true)
        expect((await opened.status())?.work).toBe('verify')
        if (lease) await store.release(lease)
        await leaseOf(store)
        expect((await opened.status())?.work).not.toBe('verify')
      })

      it('tells others of a page that its owner asks for again, until that is over', async () => {
        const NONE = { retry_since: null, retry_until: null, retry_error: null }
        const again = { since: START, until: START + HOUR, error: 'page 1: no answer' }
        const shown = { retry_since: timeAt(0), retry_until: timeAt(HOUR), retry_error: again.error }
        await begin(opened)
        const owned = await leaseOf(store)
        await store.noteRetry(owned, again)
        expect(await opened.status()).toMatchObject({ running: true, work: 'manual', ...shown })
        await store.noteRetry(owned, null)
        expect(await opened.status()).toMatchObject({ running: true, ...NONE })
        await store.noteRetry(owned, again)

        await store.release(owned)

        expect(await opened.status()).toMatchObject({ running: false, work: null, ...NONE })
        await leaseOf(store)
        expect(await opened.status()).toMatchObject({ running: true, ...NONE })
      })

      it('refuses a collection whose rows have another key', async () => {
        await walked(TEXTS)

        const { refusal } = await leaseOf(store, jobOf({ key: ['number'] }))

        expect(refusal).toMatchObject({ code: 'CONFIGURATION' })
      })
    })

    describe('a walk', () => {
      it('is open until it is closed, and resumed by its own rules, with what was counted and its answers in order, as they were taken', async () => {
        const { walk, page } = await begin(opened)
        await page(...TEXTS, '{"id":1}', '{"no":"key"}')
        await page('{"id":4}')
        const ofWalk = { id: walk.id, rules: RULES }

        const found = await store.openWalks(JOB)
        const resumed = await begin(opened, JOB, { resume: walk.id, rules: { ...RULES, maxPasses: 1 } })

        const { path } = JOB.collection
        expect(found).toMatchObject([{ ...ofWalk, origin: 'sync', kind: 'full', path }])
        expect(resumed.walk).toMatchObject({
          ...ofWalk,
          resumed: true,
          rowsSeen: 5,
          newRejects: 1,
          nextPage: 2,
        })
        const ofBoth = { total: null, next: null, lastPage: null, pass: 1, why: 'forward', resumed: false }
        expect(await ledgerOf(store, walk.id)).toMatchObject([
          { ...ofBoth, ordinal: 1, page: 1, items: 5 },
          { ...ofBoth, ordinal: 2, page: 2, items: 1 },
        ])
      })

      it('that has no page yet begins when it is taken up, by the rules of that moment, behind all others', async () => {
        const { walk } = await begin(opened, JOB, { plan: { ...SYNC, origin: 'backfill' } })
        const other = await begin(opened)
        opened.clock.advance(HOUR)
        const rules = { ...RULES, lastCoverage: 'repaired' as const }

        const resumed = await begin(opened, JOB, { resume: walk.id, rules })

        expect(resumed.walk).toMatchObject({ resumed: false, rules, startedAt: opened.clock.now() })
        const open = await store.openWalks(JOB)
        expect(open.map(({ id }) => id)).toEqual([other.walk.id, resumed.walk.id])
      })

      it('that is abandoned, by its successor or by itself, is open no longer', async () => {
        const first = await begin(opened)
        const second = await begin(opened, JOB, { abandon: [first.walk.id] })
        const afterFirst = await store.openWalks(JOB)
        await second.close('none', null)

        expect(afterFirst.map(({ id }) => id)).toEqual([second.walk.id])
        expect(await store.openWalks(JOB)).toEqual([])
      })

      it.each([
        ['completed', STEADY],
        ['abandoned', null],
      ])(
        'that is %s tells who takes the job next how it ended, and when its last page was read, though the clock was set back',
        async (_how, outcome) => {
          const lastPageAt = Date.UTC(2100, 0, 1)
          const open = await begin({ store, clock: { now: () => lastPageAt } })
          await open.page('{"id":1}')
          await open.close('none', outcome)

          const lastCoverage = outcome?.coverage ?? null
          expect(await leaseOf(store)).toMatchObject({ lastPageAt, lastCoverage })
        },
      )
    })

    describe('a page', () => {
      it('keeps an item without a usable key, new once, with the reason, and renews its time alone when it comes again', async () => {
        const { clock } = opened
        const open = await begin(opened)
        const first = await open.page('{"no":1}', '{"no":2}')
        const before = clock.now()
        clock.advance(HOUR)
        const second = await open.page('{"no":1}', '{"no":3}')

        const rows = await opened.rows('SELECT * FROM sync_rejects ORDER BY json')
        const found = rows.map(({ page, json, seen_at: at }) => {
          return [Number(page), json, new Date(at as string | Date).getTime()]
        })
        expect(found).toEqual([
          [1, '{"no":1}', clock.now()],
          [1, '{"no":2}', before],
          [2, '{"no":3}', clock.now()],
        ])
        const reason = 'key "id" is missing'
        for (const row of rows)
          expect(row).toMatchObject({ organization_id: JOB.organization.id, collection: 'orders', reason })
        expect([first.newRejects, second.newRejects]).toEqual([2, 1])
        const known = await store.lookup(JOB, identifyItems(JOB, pageOf(['{"no":1}', '{"no":4}'])))
        expect(known.map(({ state }) => state)).toEqual(['same', 'absent'])
      })

      it('is compared with the rows of its own organization', async () => {
        await walked(TEXTS)
        // What no column of whole numbers holds, and one that it does not.
        const absent = ['{"id":"007"}', '{"id":"9223372036854775808"}', '{"id":9}']
        const items = identifyItems(JOB, pageOf(['{"id":1}', '{"id":2,"a":1}', ...absent]))

        const times = { firstAt: expect.any(Number), changedAt: expect.any(Number) }
        expect(await store.lookup(JOB, items)).toEqual([
          { state: 'same', times },
          { state: 'different', text: '{"id":2}', times },
          ...absent.map(() => ({ state: 'absent' })),
        ])
        expect(await store.lookup(jobOf({}, GLOBEX), items)).toEqual(items.map(() => ({ state: 'absent' })))
      })
    })

    describe('a row that a trusted walk did not see', () => {
      beforeEach(() => walked(TEXTS))

      // The ids that each walk sees: of a list that came in one answer (!), of a partial walk (?), of one that is abandoned (~).
      it.each<[what: string, walks: string, last: MissingCounts]>([
        ['is missed once by one walk', '23', { removable: 0, held: 0, live: 3 }],
        ['is removable when a second one missed it, too', '23 23', { removable: 1, held: 0, live: 3 }],
        ['is removable at once when the list came in one answer', '23!', { removable: 1, held: 0, live: 3 }],
        ['is not missed by a walk that was abandoned', '23!~ 23', { removable: 0, held: 0, live: 3 }],
        ['is missing no longer when any walk sees it', '23 1? 23', { removable: 0, held: 0, live: 3 }],
      ])('%s, however often that is judged: %s', async (_what, walks, last) => {
        let counts: MissingCounts[] = []
        for (const walk of walks.split(' ')) {
          const isPartial = walk.includes('?')
          const open = await begin(opened, JOB, isPartial ? PARTIAL : {})
          await open.page(...itemsOf(walk.replaceAll(/\D/g, '')))
          const judge = () => open.missing(walk.includes('!'))
          counts = isPartial ? [] : [await judge(), await judge()]
          await open.close('none', walk.includes('~') ? null : STEADY)
        }

        expect(counts).toEqual([last, last])
      })

      it.each<[string, Partial<Collection>, [id: string, reason: string][]]>([
        ['with its version in the history', {}, [['1', 'removed']]],
        ['without one where no history is kept', { history: false }, []],
        ['out of scope where another list was read', { filters: { state: 'paid' } }, [['1', 'out_of_scope']]],
      ])('goes %s, when it is removed', async (_how, collection, history) => {
        const { heldBack } = await walkOf(itemsOf('23'), jobOf(collection))

        expect(heldBack).toBeNull()
        expect(Object.keys(await opened.live())).toEqual(['2', '3'])
        expect(await opened.history()).toEqual(history)
        const removed = 'SELECT CAST(sum(rows_removed) AS INTEGER) AS rows FROM sync_runs'
        expect(await opened.rows(removed)).toEqual([{ rows: 1 }])
      })

      it('goes with an event of its own number, as all that is added, changed or returns', async () => {
        await walked(['{"id":1,"a":1}', '{"id":2,"a":1}', '{"id":4}'])
        await walkOf(['{"id":3}', '{"id":5}'])
        await walked([...TEXTS, '{"id":4}', '{"id":6}'])

        const events = await opened.rows('SELECT seq FROM orders_changes')
        expect([events.length, new Set(events.map(({ seq }) => String(seq))).size]).toEqual([14, 14])
      })

      it('goes whatever the texts of its key are, of several fields too', async () => {
        const job = jobOf({ name: 'establishments', key: ['id', 'of'] })
        const ids = ['kept', '1', 'a', '"', "'", String.raw`\u0000`, 'x"1\u0001\u007f\\é\u2028😀/']
        const texts = ids.map((id) => JSON.stringify({ id, of: id }))
        const also = JSON.stringify({ id: 'kept', of: 2 })
        await walked([...texts, also], { job })
        const { ids: all } = await store.liveKeys(job, null)
        for (const [place, id] of all.entries())
          expect((await store.liveKeys(job, id)).ids).toEqual(all.slice(place + 1))

        const { missing } = await walkOf(texts.slice(0, 1), job)

        expect(missing).toEqual({ removable: 7, held: 0, live: 8 })
        expect(Object.keys(await opened.live(job))).toEqual(['["kept","kept"]'])
        const gone = [...ids.slice(1).map((id) => [id, id]), ['kept', '2']]
        expect((await opened.history(job)).map(([id]) => id).toSorted()).toEqual(
          gone.map((key) => JSON.stringify(key)).toSorted(),
        )
      })

      it('stays while it is held back, and is told by every closing until it is seen or removed', async () => {
        const told = []
        for (const [ids, removals] of [
          ['23', 'hold'],
          ['3', 'hold'],
          ['23', 'hold'],
        ] as const)
          told.push((await walked(itemsOf(ids), { removals, atOnce: true })).heldBack)

        const held = { live: 3, outOfScope: 0 }
        expect(told).toEqual([1, 2, 1].map((rows) => ({ ...held, rows })))
        expect((await walked(itemsOf('23'), { removals: 'remove' })).heldBack).toBeNull()
        expect(Object.keys(await opened.live())).toEqual(['2', '3'])
      })

      it('stays as it was when a walk ends that decides nothing of it', async () => {
        const { missing } = await walked(itemsOf('23'), { removals: 'none', atOnce: true })

        expect(missing).toEqual({ removable: 1, held: 0, live: 3 })
        expect((await walked(itemsOf('23'), { atOnce: true })).missing).toEqual(missing)
        expect(Object.keys(await opened.live())).toEqual(['1', '2', '3'])
      })

      it('is of its own list, whatever the same key is in others', async () => {
        const others = [jobOf({}, GLOBEX), jobOf({ name: 'establishments' })]
        for (const job of others) for (const ids of ['19', '9']) await walked(itemsOf(ids), { job })

        const { missing } = await walkOf(itemsOf('3'))

        expect(missing.removable).toBe(2)
        expect((await opened.history()).map(([id]) => id)).toEqual(['1', '2'])
        for (const job of others) {
          expect(Object.keys(await opened.live(job))).toEqual(['1', '9'])
          expect((await walked(itemsOf('9'), { job })).missing.removable).toBe(1)
        }
      })
    })

    it('versions that ended longer ago than the history of their list is kept are pruned', async () => {
      const jobs = [jobOf({ history: 2 * DAY }), jobOf({}, GLOBEX)]
      for (let day = 0; day <= 4; day++) {
        for (const job of jobs) {
          await walked([`{"id":1,"day":${day}}`], { job })
          await store.prune(job)
        }
        opened.clock.advance(DAY)
      }

      const sql = 'SELECT _json FROM orders_history WHERE _organization_id ='
      const left = jobs.map(({ organization: { id } }) => opened.rows(`${sql} '${id}' ORDER BY _valid_to`))
      const days = (await Promise.all(left)).map((rows) =>
        rows.map(({ _json }) => (JSON.parse(String(_json)) as { day: number }).day),
      )
      // The version of day 1 ended on day 2, when it was day 4 less two days.
      expect(days).toEqual([
        [1, 2, 3],
        [0, 1, 2, 3],
      ])
    })

    it('no row is known of a list that was never read', async () => {
      await leaseOf(store)
      const items = identifyItems(JOB, pageOf(['{"id":1}']))

      expect(await store.lookup(JOB, items)).toEqual([{ state: 'absent' }])
      expect(await store.liveKeys(JOB, null)).toEqual({ ids: [], next: null })
    })
  })
}
