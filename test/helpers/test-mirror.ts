import path from 'node:path'
import Database from 'better-sqlite3'
import { onTestFinished } from 'vitest'
import { type Connection, openForWriting } from '../../src/store/sqlite/file/open.ts'
import { createOwners } from '../../src/store/sqlite/leases.ts'
import { createMirror } from '../../src/store/sqlite/store.ts'
import { createRegistry, type Registry } from '../../src/store/sqlite/tokens.ts'
import { createTransact } from '../../src/store/sqlite/transaction.ts'
import { advance } from '../../src/sync/coverage/advance.ts'
import { startCheckpoint } from '../../src/sync/coverage/beginning.ts'
import { identifyItems } from '../../src/sync/items.ts'
import { ledgerEntry, matchPage } from '../../src/sync/match-page.ts'
import type { Mirror } from '../../src/sync/mirror.ts'
import { filtersText } from '../../src/sync/resume.ts'
import { createSeenItems, type SeenItems } from '../../src/sync/seen-items.ts'
import type { Job, Page, SavedPage, Walk, WalkOutcome, WalkPlan } from '../../src/sync/types.ts'
import { type Clock, createClock } from './clock.ts'
import { ACME, GLOBEX } from './jobs.ts'
import { lockName } from './lock-name.ts'
import { pageOf } from './pages.ts'
import { tempFolder } from './temp-folder.ts'

export type Row = Record<string, unknown>

/** A real mirror in a file of its own, with acme and globex registered for `orders`. */
export interface TestMirror {
  file: string
  clock: Clock
  connection: Connection
  mirror: Mirror
  registry: Registry
  /** What another connection reads: what is committed. Whole numbers are numbers, beyond 2^53 rounded. */
  rows(sql: string, ...values: unknown[]): Row[]
  /** The first column of the first row. */
  value(sql: string, ...values: unknown[]): unknown
  /** Tells the mirror that its process is to stop. */
  stop(): void
  close(): void
}

/** How long the test mirror keeps lines of `sync_runs` and closed walks. */
export const KEEP_RUNS_MS = 90 * 86_400_000

export function openTestMirror(options: { file?: string; clock?: Clock } = {}): TestMirror {
  const { file = path.join(tempFolder(), 'mirror.db'), clock = createClock() } = options
  const connection = openForWriting(file)
  const { now, sleep } = clock
  const stop = new AbortController()
  const owners = createOwners({ connection, file, name: lockName(), now: Date.now })
  const mirror = createMirror({
    connection,
    file,
    baseUrl: 'https://admin.example.com',
    owners,
    keepRuns: KEEP_RUNS_MS,
    now,
    sleep,
    signal: stop.signal,
  })
  const transact = createTransact({ connection, file, now, sleep, signal: stop.signal })
  const registry = createRegistry(connection, transact, () => 'a salt')
  // Written at once, since nobody holds the lock.
  void registry.register([ACME, GLOBEX].map((organization) => ({ ...organization, collections: ['orders'] })))
  const reader = new Database(file, { readonly: true })
  const close = () => {
    reader.close()
    owners.close()
    connection.close()
  }
  onTestFinished(close)
  return {
    file,
    clock,
    connection,
    mirror,
    registry,
    rows: (sql, ...values) => reader.prepare(sql).all(...values) as Row[],
    value: (sql, ...values) =>
      reader
        .prepare(sql)
        .pluck()
        .get(...values),
    stop: () => stop.abort(),
    close,
  }
}

/** Ends a budget until then, as a process does that the server asked for a pause. */
export async function closeBudget(
  { registry }: Pick<TestMirror, 'registry'>,
  scope: string,
  until: number,
): Promise<void> {
  const { version, known } = await registry.budgets.read(scope)
  const closed = { closedUntil: until, known, waitingFor: null, waitingUntil: 0 }
  await registry.budgets.compareAndSet(scope, version, () => closed)
}

export const SYNC: WalkPlan = {
  origin: 'sync',
  kind: 'full',
  firstPage: 1,
  resumeWithin: 86_400_000,
  restart: false,
}

const NO_TRAFFIC = { requests: 0, retries: 0, rateLimitHits: 0, rateLimitWaitMs: 0 }

/** A walk and its run, as `runJob` begins them, into which pages are saved by hand. */
export interface TestWalk {
  walk: Walk
  runId: number
  /** What the walk has seen. */
  seen: SeenItems
  save(page: Page): Promise<SavedPage>
  /** Saves a page that holds these texts. */
  saveItems(...texts: string[]): Promise<SavedPage>
}

export async function beginTestWalk({ mirror }: TestMirror, job: Job): Promise<TestWalk> {
  const beginning = {
    plan: SYNC,
    filters: filtersText(job.collection.filters),
    first: startCheckpoint(1),
    abandon: [],
  }
  const walk = await mirror.beginWalk(job, beginning)
  const runId = await mirror.beginRun(job, walk, 'manual')
  const run = { id: runId, traffic: NO_TRAFFIC }
  const seen = createSeenItems(walk.id)
  let checkpoint = walk.checkpoint
  let number = 1
  const save = async (page: Page) => {
    const items = identifyItems(job, page)
    const match = matchPage(items, checkpoint, seen)
    const { newToWalk } = match
    const entry = ledgerEntry(page, match)
    const next = advance({ ...walk, total: job.collection.total }, checkpoint, page, match)
    const saved = await mirror.savePage({ job, walk, run, page, items, newToWalk, entry, next })
    seen.add(entry)
    checkpoint = next
    number = page.number + 1
    return saved
  }
  return {
    walk,
    runId,
    seen,
    save,
    saveItems: (...texts) => save(pageOf(texts, { number, next: number + 1, lastPage: 1000, total: 25_000 })),
  }
}

/** All that is committed: the schema, and every row of every table. */
export function dump({ rows }: TestMirror): Record<string, Row[]> {
  const schema = rows('SELECT type, name, sql FROM sqlite_schema ORDER BY name')
  const tables = schema.filter(({ type }) => type === 'table').map(({ name }) => String(name))
  return { schema, ...Object.fromEntries(tables.map((name) => [name, rows(`SELECT * FROM "${name}"`)])) }
}

/** What a walk says of itself over a list that stood still. */
export const STEADY: WalkOutcome = { coverage: 'steady', expectedMissed: 0, untrusted: null, totalOff: null }
