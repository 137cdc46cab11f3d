import type { Rule } from '../../src/store/core/sql.ts'
import { misfitColumns, storedFacts } from '../../src/store/core/status.ts'
import { identifyItems } from '../../src/sync/items.ts'
import { createPageTimes, writePage } from '../../src/sync/page-writer.ts'
import type { RefreshState } from '../../src/sync/refresh/state.ts'
import { filtersText } from '../../src/sync/resume.ts'
import { noTraffic } from '../../src/sync/run.ts'
import type { BeginRun, Lease, Removals, RunOutcome, Store } from '../../src/sync/store.ts'
import type { Job, WalkOutcome } from '../../src/sync/types.ts'
import type { Clock } from '../helpers/clock.ts'
import { jobOf } from '../helpers/jobs.ts'
import { pageOf } from '../helpers/pages.ts'
import { BEGIN } from '../helpers/test-mirror.ts'

// A store on either database: how it is written to by hand, and how it is looked at.

export const STEADY: WalkOutcome = { coverage: 'steady', untrusted: null }

/** A run under way, into whose walk answers are written by hand. */
export type OpenRun = Awaited<ReturnType<typeof begin>>

/**
 * Begins a run of a full walk of acme's orders, or what is said instead. The run may write until another one begins; unless it keeps the job, others
 * find that free.
 */
export async function begin(
  { store, clock }: { store: Store; clock: Pick<Clock, 'now'> },
  job = jobOf(),
  { keepsJob = false, ...changed }: Partial<BeginRun> & { keepsJob?: boolean } = {},
) {
  const lease = await leaseOf(store, job)
  if (!keepsJob) await store.release(lease)
  const filters = filtersText(job.collection.filters)
  const { runId, walk } = await store.beginRun(lease, { ...BEGIN, filters, ...changed })
  const run = { id: runId, traffic: noTraffic() }
  const times = createPageTimes(lease, clock.now)
  const ledger = await ledgerOf(store, walk.id)
  const seen = new Set(ledger.flatMap(({ ids }) => ids))
  let number = ledger.length
  return {
    lease,
    run,
    walk,
    /** Writes one answer with these items. */
    page(...texts: string[]) {
      number++
      const ofList = { next: null, total: null, lastPage: null }
      const page = pageOf(texts, { ...ofList, number })
      const items = identifyItems(job, page)
      const ids = items.map(({ id }) => id)
      const shown = { ...ofList, page: number, ids, items: texts.length }
      const line = { ordinal: number, pass: 1, why: 'forward', resumed: false, at: times.ofWalk() } as const
      const newToWalk = ids.filter((id) => !seen.has(id)).length
      for (const id of ids) seen.add(id)
      const answer = { walk, entry: { ...shown, ...line }, newToWalk, nextPage: 2 }
      return writePage(store, lease, run, { page, items, at: line.at, answer })
    },
    missing: (atOnce = false) =>
      store.findMissing(lease, { walkId: walk.id, keyed: seen.size, isSeen: (id) => seen.has(id), atOnce }),
    close: (
      removals: Removals = 'none',
      outcome: WalkOutcome | null = STEADY,
      refresh: RefreshState | null = null,
    ) => store.closeWalk(lease, { walkId: walk.id, run, outcome, removals, refresh }),
    finish: (status: RunOutcome['status'], code: string | null = null) =>
      store.finishRun(run, { status, errorCode: code, errorMessage: code }),
  }
}

/** The right to work on a job, which is kept. */
export async function leaseOf(store: Store, job = jobOf()): Promise<Lease> {
  const { lease, heldBy } = await store.acquire(job)
  if (!lease) throw new Error(`held by ${heldBy}`)
  return lease
}

/** All answers of a walk. */
export async function ledgerOf(store: Store, walkId: number) {
  const entries = []
  for (let after = 0; ;) {
    const batch = await store.readLedger(walkId, after)
    entries.push(...batch)
    const last = batch.at(-1)
    if (!last) return entries
    after = last.ordinal
  }
}

/** A store on either database, and how it is looked at. */
interface LookedAt {
  store: Store
  clock: Clock
  /** The same rows as another process has them open. */
  other(): Promise<Store>
  /** The rows of this select. */
  rows(sql: string): Promise<Record<string, unknown>[]>
  /** Runs a rule that reads. */
  read<T>(rule: Rule<T>): Promise<T>
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
    async live(job = jobOf()): Promise<Record<string, string>> {
      return Object.fromEntries((await of('raw', job)).map(({ id, _json }) => [id, String(_json)]))
    },
    /** Of each superseded version: its id and why it ended, in the order of the ids. */
    async history(job = jobOf()): Promise<[id: string, reason: string][]> {
      return (await of('history', job)).map(({ id, _reason }) => [String(id), String(_reason)])
    },
    misfits: () => read(misfitColumns()),
    /** What `status` reads of the first job. */
    status: async () => (await read(storedFacts(() => null, Date.now()))).jobs[0],
  }
}
