import * as fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { sqlitePath } from '../../src/store/columns/column.ts'
import type { Rule } from '../../src/store/core/sql.ts'
import { misfitColumns, storedFacts } from '../../src/store/core/status.ts'
import { identifyItems } from '../../src/sync/items.ts'
import { createPageTimes, PageWriter } from '../../src/sync/page-writer.ts'

import { filtersText } from '../../src/sync/resume.ts'
import type { BeginRun, Lease, Removals, Run, Store, Walk } from '../../src/sync/store.ts'
import type { Job, WalkOutcome, WalkPlan } from '../../src/sync/types.ts'
import { GLOBEX, jobOf } from '../helpers/jobs.ts'
import { pageOf } from '../helpers/pages.ts'
import { RULES } from '../helpers/test-mirror.ts'
import { anyCharacter } from '../json/arbitrary.ts'
import { NAMES } from './names.ts'

// What `sync` may rely on in any store. Each store runs these tests on itself; they look at it through the port, and through
// what people read of it.

/** A store on either database, and how it is looked at. */
interface LookedAt {
  store: Store
  /** The same rows as another process has them open. */
  other(): Promise<Store>
  /** The rows of this select. */
  rows(sql: string): Promise<Record<string, unknown>[]>
  /** Runs a rule that reads. */
  read<T>(rule: Rule<T>): Promise<T>
  advance(ms: number): void
}

export type OpenedStore = ReturnType<typeof openedStore>

/** A store, and what people read of it. */
export function openedStore(lookedAt: LookedAt) {
  const { rows, read } = lookedAt
  const of = async (table: string, { organization, collection: { name, key } }: Job) => {
    const found = await rows(
      `SELECT * FROM ${name}_${table} WHERE _organization_id = '${organization.id}' ORDER BY 2, 3`,
    )
    return found.map((row): Record<string, unknown> => {
      const texts = key.map((column) => String(row[column]))
      return { ...row, id: key.length === 1 ? texts.join() : JSON.stringify(texts) }
    })
  }
  return {
    ...lookedAt,
    /** The live rows of a job as they were sent, by id. */
    async live(job: Job): Promise<Record<string, string>> {
      return Object.fromEntries((await of('raw', job)).map(({ id, _json }) => [id, String(_json)]))
    },
    /** Of each superseded version: its id and why it ended, in the order of the ids. */
    async history(job: Job): Promise<[id: string, reason: string][]> {
      return (await of('history', job)).map(({ id, _reason }) => [String(id), String(_reason)])
    },
    /** The lines of `sync_runs`, the oldest first. */
    async runs() {
      const found = await rows(
        'SELECT status, CAST(rows_removed AS INTEGER) AS rows_removed FROM sync_runs ORDER BY id',
      )
      return found as { status: string; rows_removed: number }[]
    },
    /** The types in `sync_columns` of orders, by column. */
    async columns(): Promise<Record<string, string>> {
      const found = await rows(`SELECT "column", type FROM sync_columns WHERE collection = 'orders'`)
      return Object.fromEntries(found.map(({ column, type }) => [String(column), String(type)]))
    },
    misfits: () => read(misfitColumns()),
    /** What made a job fail, since when, and the error of the last such run; null: it is well. */
    async failing(): Promise<[by: string, since: string, code: string] | null> {
      const [row] = await rows('SELECT * FROM sync_jobs WHERE failing_since IS NOT NULL')
      if (!row) return null
      const since = new Date(row.failing_since as string | Date).toISOString()
      return [String(row.failing_by), since, String(row.failing_code)]
    },
    /** What `status` reads of the first job. */
    status: async () => (await read(storedFacts(() => null, Date.now()))).jobs[0],
    /** Its last run in `sync_status`. */
    async lastRun(): Promise<[status: string, code: string | null]> {
      const sql = 'SELECT last_run_status, error_code FROM sync_status ORDER BY organization, collection'
      return Object.values((await rows(sql))[0] ?? {}) as [string, string | null]
    },
  }
}

const JOB = jobOf()
const HOUR = 3_600_000
export const PLAN: WalkPlan = {
  origin: 'sync',
  kind: 'full',
  firstPage: 1,
  resumeWithin: null,
  restart: false,
}
const STEADY: WalkOutcome = { coverage: 'steady', untrusted: null }
const TEXTS = ['{"id":1}', '{"id":2}', '{"id":3}']

/** Who has which job: all that is promised of leases. */
type Owners = Map<number, { process: number; lease: Lease }>

/** A process takes a job, or releases what it has. */
function leaseDeed(
  takes: boolean,
  process: number,
  job: number,
): fc.AsyncCommand<Owners, { stores: Store[]; jobs: Job[] }> {
  return {
    toString: () => `process ${process} ${takes ? 'takes' : 'releases'} job ${job}`,
    check: (owners) => takes || owners.get(job)?.process === process,
    async run(owners, { stores, jobs }) {
      const [one, wanted] = [stores[process], jobs[job]]
      const owner = owners.get(job)
      if (!one || !wanted) return
      if (!takes && owner) {
        owners.delete(job)
        return one.release(owner.lease)
      }
      const { lease, heldBy } = await one.acquire(wanted)
      expect([lease?.job, heldBy]).toEqual(owner ? [undefined, expect.any(String)] : [wanted, undefined])
      if (lease) owners.set(job, { process, lease })
    },
  }
}

/** A run under way, into whose walk answers are written by hand. */
export interface OpenRun {
  lease: Lease
  run: Run
  walk: Walk
  writer: PageWriter
  /** Writes one answer with these items. */
  page(...texts: string[]): Promise<void>
  missing(atOnce?: boolean): ReturnType<Store['findMissing']>
  close(removals?: Removals, outcome?: WalkOutcome | null): ReturnType<Store['closeWalk']>
}

async function leaseOf(store: Store, job: Job): Promise<Lease> {
  const { lease } = await store.acquire(job)
  if (!lease) throw new Error('another process has the job')
  return lease
}

export async function begin(
  store: Store,
  job = JOB,
  changed: Partial<BeginRun> = {},
  now = Date.now,
): Promise<OpenRun> {
  const lease = await leaseOf(store, job)
  await store.release(lease)
  const filters = filtersText(job.collection.filters)
  const { runId, walk } = await store.beginRun(lease, {
    trigger: 'manual',
    plan: PLAN,
    filters,
    rules: RULES,
    resume: null,
    abandon: [],
    brief: false,
    ...changed,
  })
  const run = { id: runId, traffic: { requests: 1, retries: 0, rateLimitHits: 0, rateLimitWaitMs: 0 } }
  const writer = new PageWriter({ store, lease, run, walk })
  const times = createPageTimes(lease, now)
  const ledger = await ledgerOf(store, walk.id)
  const seen = new Set(ledger.flatMap(({ ids }) => ids))
  let ordinal = ledger.length
  return {
    lease,
    run,
    walk,
    writer,
    async page(...texts) {
      const page = pageOf(texts, { number: ++ordinal, next: null, total: null, lastPage: null })
      const items = identifyItems(job, page)
      const ids = items.map(({ id }) => id)
      const entry = {
        ordinal,
        pass: 1,
        page: ordinal,
        ids,
        items: texts.length,
        total: null,
        next: null,
        lastPage: null,
        why: 'forward' as const,
        resumed: false,
        at: times.ofWalk(),
      }
      const newToWalk = new Set(ids.filter((id) => !seen.has(id)))
      for (const id of ids) seen.add(id)
      await writer.write({ page, items, newToWalk, entry, nextPage: 2 })
    },
    missing: (atOnce = false) =>
      store.findMissing(lease, { walkId: walk.id, keyed: seen.size, isSeen: (id) => seen.has(id), atOnce }),
    close: (removals = 'none', outcome = STEADY) =>
      store.closeWalk(lease, { walk, run, outcome, removals, refresh: null }),
  }
}

async function ledgerOf(store: Store, walkId: number) {
  const entries = []
  for (let after = 0; ; ) {
    const batch = await store.readLedger(walkId, after)
    entries.push(...batch)
    const last = batch.at(-1)
    if (!last) return entries
    after = last.ordinal
  }
}

/** A complete, trusted walk over these items. Returns what it found missing. */
async function walked(store: Store, texts: readonly string[], removals: Removals = 'none', atOnce = false) {
  const open = await begin(store)
  await open.page(...texts)
  const missing = await open.missing(atOnce)
  const { heldBack } = await open.close(removals)
  return { missing, heldBack }
}

/** A complete full walk, which removes what it does not see. Returns its start. */
async function walkOf(store: Store, ...texts: string[]): Promise<string> {
  const open = await begin(store)
  await open.page(...texts)
  await open.missing(true)
  await open.close('remove')
  return new Date(open.walk.startedAt).toISOString()
}

/** The values of rows that are the API's, in an order of their own. */
function discovered(rows: readonly Record<string, unknown>[]): string[] {
  const texts = rows.map((row) => {
    const values = Object.entries(row).filter(([name, value]) => !name.startsWith('_') && value !== null)
    return JSON.stringify(
      values.map(([name, value]) => [name, String(value)].join()).toSorted((a, b) => a.localeCompare(b)),
    )
  })
  return texts.toSorted()
}

/** An object with these fields, each with its place as its value. */
function fieldsOf(names: readonly string[]): string {
  return `{${names.map((field, index) => `${JSON.stringify(field)}:${index}`).join()}}`
}

/** The values of a row of a table or view of orders, by the paths of their fields. */
async function shownIn(
  { rows }: OpenedStore,
  table: string,
  known: string,
  which: string,
): Promise<Map<unknown, unknown>> {
  const columns = await rows(`SELECT "column" AS c, path FROM ${known}`)
  const [row] = await rows(`SELECT * FROM ${table} WHERE ${which}`)
  return new Map(columns.map(({ c, path }) => [path, row?.[String(c)]]))
}

async function expectShown(opened: OpenedStore, id: number, names: readonly string[]): Promise<void> {
  const item = fieldsOf(names)
  const open = await begin(opened.store)
  await open.page(`{"id":${id},${item.slice(1, -1)},"in":[${item}]}`.replace(`"id":${id},}`, `"id":${id}}`))
  const ofItems = "sync_columns WHERE collection = 'orders'"
  for (const [table, known, which] of [
    ['orders', ofItems, `id = ${id}`],
    ['orders_versions', ofItems, `id = ${id}`],
    ['orders__in', "sync_known_columns WHERE view = 'orders__in'", `_parent_id = ${id}`],
  ] as const) {
    const values = await shownIn(opened, table, known, which)
    for (const [index, field] of names.entries())
      expect([table, field, Number(values.get(sqlitePath([field])))]).toEqual([table, field, index])
  }
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

    describe('a lease', () => {
      it('belongs to one process at a time, whoever takes, releases or asks', async () => {
        const stores = [store, await opened.other()]
        const jobs = [JOB, jobOf({}, GLOBEX), jobOf({ name: 'establishments' })]
        const deed = fc.tuple(fc.boolean(), fc.nat(stores.length - 1), fc.nat(jobs.length - 1))
        const deeds = deed.map(([takes, process, job]) => leaseDeed(takes, process, job))
        await fc.assert(
          fc.asyncProperty(fc.commands([deeds], { maxCommands: 20, size: 'max' }), async (all) => {
            const owners: Owners = new Map()
            await fc.asyncModelRun(() => ({ model: owners, real: { stores, jobs } }), all)
            for (const { process, lease } of owners.values()) await stores[process]?.release(lease)
          }),
          { numRuns: 10 },
        )
      })

      it('tells others what its owner does', async () => {
        const other = await opened.other()
        const { page } = await begin(store)
        await page(...TEXTS)
        await leaseOf(store, JOB)

        const { work } = await other.acquire(JOB)

        expect(work).toEqual({ isDaemon: false, isVerify: false, trigger: 'manual' })
      })

      it('tells others of a verify, and of no run that a process left before it', async () => {
        const other = await opened.other()
        await begin(store)
        await store.release(await leaseOf(store, JOB))
        const { lease } = await store.acquire(JOB, true)

        const { work } = await other.acquire(JOB)

        expect(work).toEqual({ isDaemon: false, isVerify: true, trigger: null })
        expect((await opened.status())?.work).toBe('verify')
        if (lease) await store.release(lease)
        await leaseOf(store, JOB)
        expect((await opened.status())?.work).not.toBe('verify')
      })

      it('tells others of a page that its owner asks for again, until that is over', async () => {
        const NONE = { retry_since: null, retry_until: null, retry_error: null }
        const { lease } = await begin(store)
        const again = { since: Date.UTC(2026, 0, 1), until: Date.UTC(2026, 0, 2), error: 'page 1: no answer' }
        const shown = {
          retry_since: '2026-01-01T00:00:00.000Z',
          retry_until: '2026-01-02T00:00:00.000Z',
          retry_error: 'page 1: no answer',
        }
        const owned = await leaseOf(store, JOB)
        await store.noteRetry(owned, again)
        expect(await opened.status()).toMatchObject({ running: true, work: 'manual', ...shown })
        await store.noteRetry(owned, null)
        expect(await opened.status()).toMatchObject({ running: true, ...NONE })
        await store.noteRetry(owned, again)

        await store.release(owned)

        expect(await opened.status()).toMatchObject({ running: false, work: null, ...NONE })
        await leaseOf(store, lease.job)
        expect(await opened.status()).toMatchObject({ running: true, ...NONE })
      })

      it('says whether anything of the list was ever stored, and how its last full walk ended', async () => {
        const fresh = await leaseOf(store, JOB)
        await store.release(fresh)
        const drifted: WalkOutcome = { ...STEADY, coverage: 'drifted', untrusted: 'why' }
        const walk = await begin(store)
        await walk.page(...TEXTS)
        await walk.close('none', drifted)

        const later = await leaseOf(store, JOB)

        expect(fresh.lastCoverage).toBeNull()
        expect(later.lastCoverage).toBe('drifted')
      })

      it('refuses a collection whose rows have another key', async () => {
        await walked(store, TEXTS)

        const { refusal } = await leaseOf(store, jobOf({ key: ['number'] }))

        expect(refusal).toMatchObject({ code: 'CONFIGURATION' })
      })
    })

    describe('a walk', () => {
      it('is open until it is closed, and is resumed with what earlier runs counted', async () => {
        const { walk, page } = await begin(store)
        await page(...TEXTS, '{"no":"key"}')

        const [found] = await store.openWalks(JOB)
        const resumed = await begin(store, JOB, { resume: walk.id })

        expect(found).toMatchObject({ id: walk.id, origin: 'sync', kind: 'full', path: JOB.collection.path })
        expect(resumed.walk).toMatchObject({ id: walk.id, resumed: true, rowsSeen: 4, newRejects: 1 })
        expect(resumed.walk.checkpoint).toMatchObject({ pass: 1, nextPage: 2 })
      })

      it('that has no page yet starts when it is taken up, by the rules of that moment', async () => {
        const { walk } = await begin(store)
        opened.advance(HOUR)

        const rules = { ...RULES, lastCoverage: 'repaired' as const }

        const resumed = await begin(store, JOB, { resume: walk.id, rules })

        expect(resumed.walk).toMatchObject({ id: walk.id, resumed: false })
        expect(resumed.walk.rules).toEqual(rules)
        expect((await store.openWalks(JOB))[0]?.updatedAt).toBeGreaterThan(HOUR)
      })

      it('that is abandoned, by its successor or by itself, is open no longer', async () => {
        const first = await begin(store)
        const second = await begin(store, JOB, { abandon: [first.walk.id] })
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
        const open = await begin(store, JOB, {}, () => ahead)
        await open.page('{"id":1}')
        await open.close('none', outcome)

        expect((await leaseOf(store, JOB)).lastPageAt).toBe(ahead)
      })

      it('has its answers read in their order, a batch at a time', async () => {
        const { walk, page } = await begin(store)
        for (let number = 1; number <= 501; number++) await page(`{"id":${number}}`)

        const batches = [
          await store.readLedger(walk.id, 0),
          await store.readLedger(walk.id, 500),
          await store.readLedger(walk.id, 501),
        ]

        expect(batches.map((batch) => batch.length)).toEqual([500, 1, 0])
        expect(batches.flat().map(({ ids }) => ids[0])).toEqual(
          Array.from({ length: 501 }, (_, index) => String(index + 1)),
        )
      })

      it('keeps its rules, and each answer as it was taken', async () => {
        const { walk, page } = await begin(store)
        await page(...TEXTS, TEXTS[0] ?? '')

        const resumed = await begin(store, JOB, { resume: walk.id, rules: { ...RULES, maxPasses: 1 } })

        expect((await store.openWalks(JOB)).map(({ rules }) => rules)).toEqual([RULES])
        expect(resumed.walk.rules).toEqual(RULES)
        expect(await ledgerOf(store, walk.id)).toMatchObject([
          {
            ordinal: 1,
            pass: 1,
            page: 1,
            items: TEXTS.length + 1,
            total: null,
            next: null,
            lastPage: null,
            why: 'forward',
            resumed: false,
          },
        ])
      })
    })

    describe('a page', () => {
      it('adds rows, keeps the version that a change replaces, and leaves equal rows alone', async () => {
        await walked(store, ['{"id":1,"a":1}', '{"id":2,"a":1}'])
        opened.advance(HOUR)

        await walked(store, ['{"id":1,"a":2}', '{"a":1,"id":2}', '{"id":3,"a":1}'])

        expect(await opened.live(JOB)).toEqual({
          1: '{"id":1,"a":2}',
          2: '{"id":2,"a":1}',
          3: '{"id":3,"a":1}',
        })
        expect(await opened.history(JOB)).toEqual([['1', 'changed']])
      })

      it('counts an item without a usable key as new once', async () => {
        const first = await begin(store)
        await first.page('{"no":1}', '{"no":2}')
        await first.page('{"no":1}', '{"no":3}')

        const known = await store.lookup(JOB, identifyItems(JOB, pageOf(['{"no":1}', '{"no":4}'])))

        expect(first.writer.newRejects).toBe(3)
        expect(known.map(({ state }) => state)).toEqual(['same', 'absent'])
      })

      it('keeps an item without a usable key with the reason, and renews its time alone when it comes again', async () => {
        const rejects =
          'SELECT organization_id, collection, CAST(page AS TEXT) AS page, reason, json FROM sync_rejects'
        const times = [Date.parse('2030-01-01'), Date.parse('2030-02-01')]
        for (const time of times) {
          const open = await begin(store, JOB, {}, () => time)
          if (time === times[1]) await open.page('{"id":1}')
          await open.page('{"no":1}')

          expect(await opened.rows(rejects)).toEqual([
            {
              organization_id: JOB.organization.id,
              collection: 'orders',
              page: '1',
              reason: 'key "id" is missing',
              json: '{"no":1}',
            },
          ])
          const [seen] = await opened.rows('SELECT seen_at AS at FROM sync_rejects')
          expect(new Date(String(seen?.at)).getTime()).toBe(time)
        }
      })

      it('is compared with the rows of its own organization', async () => {
        await walked(store, TEXTS)
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

      it('of a collection with several key fields has them all in its ids, whatever characters they hold', async () => {
        const job = jobOf({ key: ['a', 'b'] })
        const odd = 'x"1\u0001\u007f\\é\u2028😀/'
        const text = (b: number) => JSON.stringify({ a: odd, b })
        const open = await begin(store, job)
        await open.page(text(2), text(3))
        const again = await begin(store, job)
        await again.page(text(3))
        const missing = await again.missing(true)
        await again.close('remove')

        expect(missing).toEqual({ removable: 1, held: 0, live: 2 })
        expect(Object.keys(await opened.live(job))).toEqual([JSON.stringify([odd, '3'])])
        expect(await opened.history(job)).toEqual([[JSON.stringify([odd, '2']), 'removed']])
      })
    })

    describe('a row that a trusted walk did not see', () => {
      beforeEach(() => walked(store, TEXTS))

      it('is removable when a second walk missed it, too', async () => {
        const first = await walked(store, TEXTS.slice(1))
        const second = await walked(store, TEXTS.slice(1))

        expect(first.missing).toEqual({ removable: 0, held: 0, live: 3 })
        expect(second.missing).toEqual({ removable: 1, held: 0, live: 3 })
      })

      it('is removable at once when the list came in one answer', async () => {
        expect((await walked(store, TEXTS.slice(1), 'none', true)).missing.removable).toBe(1)
      })

      it('is missed once by one walk, however often that is judged', async () => {
        const open = await begin(store)
        await open.page(...TEXTS.slice(1))

        expect([await open.missing(), await open.missing()]).toEqual([
          { removable: 0, held: 0, live: 3 },
          { removable: 0, held: 0, live: 3 },
        ])
      })

      it('is not missed by a walk that was abandoned after it was judged', async () => {
        const open = await begin(store)
        await open.page(...TEXTS.slice(1))
        await open.missing(true)
        await open.close('none', null)

        expect((await walked(store, TEXTS.slice(1))).missing.removable).toBe(0)
      })

      it('is missing no longer when any walk sees it, a partial one too', async () => {
        await walked(store, TEXTS.slice(1))
        const partial = await begin(store, JOB, { plan: { ...PLAN, origin: 'backfill', kind: 'partial' } })
        await partial.page('{"id":1}')
        await partial.close()

        expect((await walked(store, TEXTS.slice(1))).missing.removable).toBe(0)
      })

      it('is not missing when another walk saw it since this one began', async () => {
        const open = await begin(store)
        await open.page('{"id":2}')
        const between = await begin(store, JOB, { plan: { ...PLAN, origin: 'backfill', kind: 'partial' } })
        await between.page('{"id":1}', '{"id":4}')
        await between.close()
        await store.prune(JOB)

        const resumed = await begin(store, JOB, { resume: open.walk.id })
        await resumed.page('{"id":3}')

        expect(await resumed.missing(true)).toEqual({ removable: 0, held: 0, live: 4 })
      })

      it('goes, with its version in the history, when it is removed', async () => {
        const { heldBack } = await walked(store, TEXTS.slice(1), 'remove', true)

        expect(heldBack).toBeNull()
        expect(Object.keys(await opened.live(JOB))).toEqual(['2', '3'])
        expect(await opened.history(JOB)).toEqual([['1', 'removed']])
        expect((await opened.runs()).at(-1)).toMatchObject({ rows_removed: 1 })
      })

      it('goes whatever the texts of its key are', async () => {
        const job = jobOf({ name: 'establishments', key: ['id', 'of'] })
        const texts = ['kept', '1', 'a', '"', "'", String.raw`\u0000`].map((id) =>
          JSON.stringify({ id, of: id }),
        )
        const first = await begin(store, job)
        await first.page(...texts)
        await first.close()
        const open = await begin(store, job)
        await open.page(...texts.slice(0, 1))

        expect(await open.missing(true)).toEqual({ removable: 5, held: 0, live: 6 })
        await open.close('remove')

        expect(Object.keys(await opened.live(job))).toEqual(['["kept","kept"]'])
        expect(await opened.history(job)).toHaveLength(5)
        expect((await opened.runs()).at(-1)).toMatchObject({ rows_removed: 5 })
      })

      it('goes without a version where no history is kept', async () => {
        const job = jobOf({ history: false })
        const open = await begin(store, job)
        await open.page(...TEXTS.slice(1))
        await open.missing(true)
        await open.close('remove')

        expect(Object.keys(await opened.live(JOB))).toEqual(['2', '3'])
        expect(await opened.history(JOB)).toEqual([])
      })

      it('stays while it is held back, and is told by every closing until it is seen or removed', async () => {
        const first = await walked(store, TEXTS.slice(1), { hold: 'brake' }, true)
        const second = await walked(store, TEXTS.slice(2), { hold: 'earlier' }, true)
        const third = await walked(store, TEXTS.slice(1), { hold: 'earlier' }, true)
        const fourth = await walked(store, TEXTS.slice(1), 'remove')

        expect([first.heldBack, second.heldBack, third.heldBack, fourth.heldBack]).toEqual([
          { rows: 1, live: 3, why: 'brake', outOfScope: 0 },
          { rows: 2, live: 3, why: 'brake', outOfScope: 0 },
          { rows: 1, live: 3, why: 'brake', outOfScope: 0 },
          null,
        ])
        expect(Object.keys(await opened.live(JOB))).toEqual(['2', '3'])
      })

      it('left the scope when the list that is read is another one', async () => {
        const job = jobOf({ filters: { state: 'paid' } })
        const open = await begin(store, job)
        await open.page(...TEXTS.slice(1))
        await open.missing(true)
        await open.close('remove')

        expect(await opened.history(JOB)).toEqual([['1', 'out_of_scope']])
      })

      it('is of its own list, whatever the same key is in others', async () => {
        const others = [jobOf({}, GLOBEX), jobOf({ name: 'establishments' })]
        for (const job of others)
          for (const texts of [['{"id":1}', '{"id":9}'], ['{"id":9}']]) {
            const other = await begin(store, job)
            await other.page(...texts)
            await other.missing()
            await other.close()
          }

        const { missing } = await walked(store, TEXTS.slice(2), 'remove', true)

        expect(missing.removable).toBe(2)
        expect((await opened.history(JOB)).map(([id]) => id)).toEqual(['1', '2'])
        for (const job of others) {
          expect(Object.keys(await opened.live(job))).toEqual(['1', '9'])
          const again = await begin(store, job)
          await again.page('{"id":9}')
          expect((await again.missing()).removable).toBe(1)
        }
      })
    })

    describe('a run', () => {
      it('leaves its line, and closes the line of one that died', async () => {
        await begin(store)
        const { run, page } = await begin(store)
        await page(...TEXTS)

        const record = await store.finishRun(run, {
          status: 'succeeded',
          errorCode: null,
          errorMessage: null,
        })

        expect(record).toEqual({ pages: 1, rowsSeen: 3, rowsAdded: 3, rowsChanged: 0, rowsRemoved: 0 })
        expect((await opened.runs()).map(({ status }) => status)).toEqual(['interrupted', 'succeeded'])
      })

      it('that was refused before its first request leaves none', async () => {
        const { run } = await begin(store)

        await store.finishRun(run, {
          status: 'refused',
          errorCode: 'UNAUTHORIZED',
          errorMessage: 'held',
        })

        expect(await opened.runs()).toEqual([])
      })
    })

    it('keeps the page ledger of walks that are open, and of no other, when it prunes', async () => {
      const walks = []
      for (const outcome of [STEADY, null, undefined]) {
        const open = await begin(store)
        await open.page(...TEXTS)
        if (outcome !== undefined) await open.close('none', outcome)
        walks.push(open.walk.id)
      }

      await store.prune(JOB)

      const kept = await Promise.all(walks.map((id) => ledgerOf(store, id)))
      expect(kept.map((entries) => entries.length)).toEqual([0, 0, 1])
    })

    it('gives a column to a field that is called like SQL, and another type when it meets a fraction', async () => {
      const names = [
        '"',
        'b\n  "" INTEGER',
        'b\n """ INTEGER',
        '", "x" INTEGER',
        "d'--\n/*",
        ') STRICT;',
        '$1\\',
      ]
      const itemOf = (id: number, value: unknown) =>
        JSON.stringify({ id, ...Object.fromEntries(names.map((field) => [field, value])) })
      await walkOf(store, itemOf(1, 1))
      await walkOf(store, itemOf(1, 1), itemOf(2, 1.5))
      await walkOf(store, itemOf(1, 1), itemOf(2, 1.5), itemOf(3, 'x'))

      const columns = await opened.columns()
      expect(names.map((field) => columns[field])).toEqual(names.map(() => 'REAL'))
      expect((await opened.misfits()).map(({ rows }) => rows)).toEqual(names.map(() => 1))
    })

    it('has a column for every name that a field can have, of items and of elements', async () => {
      await expectShown(
        opened,
        1,
        NAMES.filter((field) => field !== 'in'),
      )
      const texts = fc
        .string({ unit: anyCharacter, maxLength: 5 })
        .map((text) => text.toWellFormed().replaceAll('\0', ''))
      const lists = fc.uniqueArray(
        fc.constant('u').chain((end) => texts.map((text) => text + end)),
        { minLength: 1, maxLength: 5 },
      )
      let id = 1
      await fc.assert(
        fc.asyncProperty(lists, (names) => expectShown(opened, ++id, names)),
        { numRuns: 3 },
      )
    })

    it('shows a list with holes within an element as a list', async () => {
      const subs = ['[{"z":1}]', '{"2":{"z":2},"5":"x"}', '{"a":1}', '{}']
      await walkOf(store, ...subs.map((sub, index) => `{"id":${index},"lines":[{"sub":${sub}}]}`))

      const shown = await opened.rows('SELECT sub FROM orders__lines ORDER BY _parent_id')
      expect(shown.map(({ sub }) => sub)).toEqual(['[{"z":1}]', '[{"z":2},"x"]', null, null])
    })

    it('shows one as a list, too, where the first list comes later', async () => {
      const open = await begin(store, JOB)
      await open.page('{"id":1,"lines":{"0":{"n":1},"2":{"n":2}}}', '{"id":2,"lines":{"0":{"n":5},"x":6}}')
      await open.page('{"id":3,"lines":[{"n":3}]}')
      await open.close()

      const elements = await opened.rows('SELECT _parent_id, n FROM orders__lines ORDER BY 1, _index')
      expect(elements.map((row) => Object.values(row).join())).toEqual(['1,1', '1,2', '3,3'])
      const items = await opened.rows('SELECT id, lines, lines__0__n, lines__2__n FROM orders ORDER BY id')
      expect(items.map((row) => Object.values(row).join())).toEqual([
        '1,[{"n":1},{"n":2}],,',
        '2,,5,',
        '3,[{"n":3}],,',
      ])
    })

    it('counts the values that did not fit their columns, of all lists of a collection', async () => {
      await walkOf(store, '{"id":1,"a":1,"b":"x"}', '{"id":2,"a":"7"}', '{"id":3,"a":"seven","b":true}')
      const open = await begin(store, jobOf({}, GLOBEX))
      await open.page('{"id":1,"a":"x"}')
      await open.close()
      expect(await opened.misfits()).toEqual([
        { collection: 'orders', column: 'a__text', rows: 2 },
        { collection: 'orders', column: 'b__text', rows: 1 },
      ])
      expect(await opened.columns()).toEqual({
        id: 'INTEGER',
        a: 'INTEGER',
        b: 'TEXT',
        a__text: 'TEXT',
        b__text: 'TEXT',
      })

      await walkOf(store, '{"id":1,"a":1}', '{"id":2,"a":"7"}', '{"id":3,"a":2}')

      expect(await opened.misfits()).toEqual([{ collection: 'orders', column: 'a__text', rows: 1 }])
    })

    it('tells what was known at each moment, with the columns of the items', async () => {
      const walks = [
        ['{"id":1,"a":1}', '{"id":2,"a":2,"b":"x"}'],
        ['{"id":1,"a":"seven"}', '{"id":2,"a":2,"b":"x"}'],
        ['{"id":1,"a":1.5,"c":{"d":[1]}}', '{"id":2,"a":9,"b":"y"}'],
        ['{"id":1,"a":1.5,"c":{"d":[1]}}', '{"id":2,"a":9,"b":"y"}', '{"id":"x-3","b":"z"}'],
      ]
      const found: [at: string, rows: string[]][] = []
      for (const [index, texts] of walks.entries()) {
        const time = Date.parse('2030-01-01') + index * HOUR
        const open = await begin(store, JOB, {}, () => time)
        await open.page(...texts)
        const at = new Date(time).toISOString()
        found.push([at, discovered(await opened.rows('SELECT * FROM orders'))])
      }

      for (const [at, rows] of found) {
        const asOf = `_valid_from <= '${at}' AND (_valid_to IS NULL OR _valid_to > '${at}')`
        expect(discovered(await opened.rows(`SELECT * FROM orders_versions WHERE ${asOf}`))).toEqual(rows)
      }
    })

    it('names the keys of all live rows of a job, and knows none of a collection without tables', async () => {
      const [one] = identifyItems(JOB, pageOf(TEXTS.slice(0, 1)))
      expect(await store.lookup(JOB, one ? [one] : [])).toEqual([{ state: 'absent' }])
      expect(await store.liveKeys(JOB, null)).toEqual({ ids: [], next: null })
      await walked(store, TEXTS)

      expect(await store.liveKeys(JOB, null)).toEqual({ ids: ['1', '2', '3'], next: null })
      expect(await store.liveKeys(jobOf({}, GLOBEX), null)).toEqual({ ids: [], next: null })
    })
  })
}
