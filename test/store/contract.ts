import * as fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { identifyItems } from '../../src/sync/items.ts'
import type { Lease, MissingCounts, Removals, Store } from '../../src/sync/store.ts'
import type { Collection, Job } from '../../src/sync/types.ts'
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

/** Plays who takes (true) or releases which job in which process. One has it who took it last, until it releases it. */
async function play(all: readonly [takes: boolean, Store, Job][]): Promise<void> {
  const owners = new Map<Job, { process: Store; lease: Lease }>()
  for (const [takes, process, job] of all) {
    const owner = owners.get(job)
    if (takes) {
      const { lease, heldBy } = await process.acquire(job)
      expect([lease?.job, heldBy]).toEqual(owner ? [undefined, expect.any(String)] : [job, undefined])
      if (lease) owners.set(job, { process, lease })
    } else if (owner?.process === process) {
      owners.delete(job)
      await process.release(owner.lease)
    }
  }
  for (const { process, lease } of owners.values()) await process.release(lease)
}

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
      it('belongs to one process at a time, whoever takes, releases or asks', async () => {
        const stores = [store, await opened.other()]
        const jobs = [JOB, jobOf({}, GLOBEX), jobOf({ name: 'establishments' })]
        const deed = fc.tuple(fc.boolean(), fc.constantFrom(...stores), fc.constantFrom(...jobs))
        const deeds = fc.array(deed, { maxLength: 20, size: 'max' })
        await fc.assert(fc.asyncProperty(deeds, play), { numRuns: 10 })
      })

      it('tells others what its owner does, of a verify too, and of no run that a process left before that', async () => {
        const other = await opened.other()
        const told = async () => (await other.acquire(JOB)).work
        await begin(opened)
        const sync = await leaseOf(store)

        expect(await told()).toEqual({ isDaemon: false, isVerify: false, trigger: 'manual' })
        await store.release(sync)
        const { lease } = await store.acquire(JOB, true)
        expect(await told()).toEqual({ isDaemon: false, isVerify: true, trigger: null })
        expect((await opened.status())?.work).toBe('verify')
        if (lease) await store.release(lease)
        await leaseOf(store)
        expect((await opened.status())?.work).not.toBe('verify')
      })

      it('tells others of a page that its owner asks for again, until that is over', async () => {
        const NONE = { retry_since: null, retry_until: null, retry_error: null }
        const again = { since: Date.UTC(2026, 0, 1), until: Date.UTC(2026, 0, 2), error: 'page 1: no answer' }
        const shown = {
          retry_since: '2026-01-01T00:00:00.000Z',
          retry_until: '2026-01-02T00:00:00.000Z',
          retry_error: 'page 1: no answer',
        }
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

      it('says how the last full walk of the list ended, if one did', async () => {
        const open = await begin(opened)
        await open.page(...TEXTS)
        await open.close('none', { coverage: 'drifted', untrusted: 'why' })

        expect(open.lease.lastCoverage).toBeNull()
        expect((await leaseOf(store)).lastCoverage).toBe('drifted')
      })

      it('refuses a collection whose rows have another key', async () => {
        await walked(TEXTS)

        const { refusal } = await leaseOf(store, jobOf({ key: ['number'] }))

        expect(refusal).toMatchObject({ code: 'CONFIGURATION' })
      })
    })

    describe('a walk', () => {
      it('is open until it is closed, and resumed by its own rules, with what was counted and each answer as it was taken', async () => {
        const { walk, page } = await begin(opened)
        await page(...TEXTS, '{"id":1}', '{"no":"key"}')
        const ofWalk = { id: walk.id, rules: RULES }

        const found = await store.openWalks(JOB)
        const resumed = await begin(opened, JOB, { resume: walk.id, rules: { ...RULES, maxPasses: 1 } })

        const { path } = JOB.collection
        expect(found).toMatchObject([{ ...ofWalk, origin: 'sync', kind: 'full', path }])
        expect(resumed.walk).toMatchObject({
          ...ofWalk,
          resumed: true,
          rowsSeen: 4,
          newRejects: 1,
          nextPage: 2,
        })
        const ofList = { page: 1, items: 5, total: null, next: null, lastPage: null }
        expect(await ledgerOf(store, walk.id)).toMatchObject([
          { ...ofList, ordinal: 1, pass: 1, why: 'forward', resumed: false },
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
      ])('that is %s after the clock was set back keeps the time of its last page', async (_how, outcome) => {
        const ahead = Date.UTC(2100, 0, 1)
        const open = await begin({ store, clock: { now: () => ahead } })
        await open.page('{"id":1}')
        await open.close('none', outcome)

        expect((await leaseOf(store)).lastPageAt).toBe(ahead)
      })

      it('has its answers read in their order, a batch at a time', async () => {
        const { walk, page } = await begin(opened)
        for (let number = 1; number <= 501; number++) await page(`{"id":${number}}`)

        const batches = await Promise.all([0, 500, 501].map((after) => store.readLedger(walk.id, after)))

        expect(batches.map((batch) => batch.length)).toEqual([500, 1, 0])
        expect(batches.flat().map(({ ids }) => Number(ids[0]))).toEqual(
          Array.from({ length: 501 }, (_, index) => index + 1),
        )
      })
    })

    describe('a page', () => {
      it('adds rows, keeps the version that a change replaces, and leaves equal rows alone', async () => {
        await walked(['{"id":1,"a":1}', '{"id":2,"a":1}'])
        opened.clock.advance(HOUR)

        await walked(['{"id":1,"a":2}', '{"a":1,"id":2}', '{"id":3,"a":1}'])

        expect(await opened.live()).toEqual({
          1: '{"id":1,"a":2}',
          2: '{"id":2,"a":1}',
          3: '{"id":3,"a":1}',
        })
        expect(await opened.history()).toEqual([['1', 'changed']])
      })

      it('keeps an item without a usable key, new once, with the reason, and renews its time alone when it comes again', async () => {
        const { clock } = opened
        const open = await begin(opened)
        await open.page('{"no":1}', '{"no":2}')
        const before = clock.now()
        clock.advance(HOUR)
        await open.page('{"no":1}', '{"no":3}')

        const rows = await opened.rows('SELECT * FROM sync_rejects ORDER BY json')
        const found = rows.map(({ page, json, seen_at: at }) => {
          return [Number(page), json, new Date(at as string | Date).getTime()]
        })
        expect(found).toEqual([
          [1, '{"no":1}', clock.now()],
          [1, '{"no":2}', before],
          [2, '{"no":3}', clock.now()],
        ])
        for (const row of rows)
          expect(row).toMatchObject({
            organization_id: JOB.organization.id,
            collection: 'orders',
            reason: 'key "id" is missing',
          })
        expect(open.writer.newRejects).toBe(3)
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

      it('is not missing when another walk saw it since this one began', async () => {
        const open = await begin(opened)
        await open.page('{"id":2}')
        const between = await begin(opened, JOB, PARTIAL)
        await between.page('{"id":1}', '{"id":4}')
        await between.close()
        await store.prune(JOB)

        const resumed = await begin(opened, JOB, { resume: open.walk.id })
        await resumed.page('{"id":3}')

        expect(await resumed.missing(true)).toEqual({ removable: 0, held: 0, live: 4 })
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
        expect((await opened.runs()).at(-1)).toMatchObject({ rows_removed: 1 })
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
        expect((await opened.runs()).at(-1)).toMatchObject({ rows_removed: 7 })
      })

      it('stays while it is held back, and is told by every closing until it is seen or removed', async () => {
        const told = []
        for (const [ids, removals] of [
          ['23', { hold: 'brake' }],
          ['3', { hold: 'earlier' }],
          ['23', { hold: 'earlier' }],
        ] as const)
          told.push((await walked(itemsOf(ids), { removals, atOnce: true })).heldBack)

        const held = { live: 3, why: 'brake', outOfScope: 0 }
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

    describe('a run', () => {
      it('leaves its line, and closes the line of one that died', async () => {
        await begin(opened)
        const { page, finish } = await begin(opened)
        await page(...TEXTS)

        const counts = { pages: 1, rowsSeen: 3, rowsAdded: 3, rowsChanged: 0, rowsRemoved: 0 }
        expect(await finish('succeeded')).toEqual(counts)
        expect((await opened.runs()).map(({ status }) => status)).toEqual(['interrupted', 'succeeded'])
      })

      it('that was refused before its first request leaves none', async () => {
        const { finish } = await begin(opened)
        await finish('refused', 'UNAUTHORIZED')

        expect(await opened.runs()).toEqual([])
      })
    })

    describe('what is pruned', () => {
      it('is the page ledger of walks that are not open, and of no other', async () => {
        const walks = []
        for (const outcome of [STEADY, null, undefined]) {
          const open = await begin(opened)
          await open.page(...TEXTS)
          if (outcome !== undefined) await open.close('none', outcome)
          walks.push(open.walk.id)
        }

        await store.prune(JOB)

        const kept = await Promise.all(walks.map((id) => ledgerOf(store, id)))
        expect(kept.map((entries) => entries.length)).toEqual([0, 0, 1])
      })

      it('are versions that ended longer ago than the history of their list is kept', async () => {
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
    })

    it('names the keys of all live rows of a job, and knows none of a collection without tables', async () => {
      const items = identifyItems(JOB, pageOf(['{"id":1}']))
      expect(await store.lookup(JOB, items)).toEqual([{ state: 'absent' }])
      expect(await store.liveKeys(JOB, null)).toEqual({ ids: [], next: null })
      await walked(TEXTS)

      expect(await store.liveKeys(JOB, null)).toEqual({ ids: ['1', '2', '3'], next: null })
      expect(await store.liveKeys(JOB, '2')).toEqual({ ids: ['3'], next: null })
      expect(await store.liveKeys(jobOf({}, GLOBEX), null)).toEqual({ ids: [], next: null })
    })
  })
}
