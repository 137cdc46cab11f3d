import { InterruptedError } from '../errors.ts'
import { parseExact } from '../json/exact.ts'
import { sameJson } from '../json/same.ts'
import type { Job, Mirror, Notice, Page, SavedPage, SightedItem, Sighting } from '../sync/types.ts'
import { counted } from '../text.ts'
import { type CollectionTables, openCollection } from './collection.ts'
import { assertKey } from './column-records.ts'
import type { KeyPart } from './columns/key.ts'
import { type Connection, guarded } from './database.ts'
import { ledgerLine } from './ledger-line.ts'
import type { Owners } from './owners.ts'
import { sightingOf } from './placing.ts'
import { createPruning } from './pruning.ts'
import { createRunStore } from './run-store.ts'
import { keyPathsOf, objectOf, sightItems } from './sighting.ts'
import { inSteps } from './steps.ts'
import { createTransact, type Transact } from './transaction.ts'
import { createWalkStore } from './walk-store.ts'

export interface MirrorOptions {
  connection: Connection
  file: string
  owners: Owners
  /** How long lines of `sync_runs` and closed walks are kept, in milliseconds. */
  keepRuns: number
  now: () => number
  sleep: (ms: number) => Promise<void>
  /** Aborted when the process is told to stop. */
  signal: AbortSignal
}

/** The mirror for writing. Every method is one transaction, and throws MirrorError when the file cannot be used. */
export function createMirror({
  connection,
  file,
  owners,
  keepRuns,
  now,
  sleep,
  signal,
}: MirrorOptions): Mirror {
  const walks = createWalkStore(connection)
  const runs = createRunStore(connection)
  const pruning = createPruning(connection)
  const collections = createCollectionCache(connection)
  const write = createTransact({ connection, file, now, sleep, signal, onRollback: collections.forget })
  const transact: Transact = (task) =>
    write(() => {
      owners.assertAlive()
      return task()
    })
  const patience = { now, sleep, signal }
  const time = () => new Date(now()).toISOString()

  async function toTheEnd(step: (rows: number) => boolean | Promise<boolean>): Promise<void> {
    if (await inSteps(patience, step)) return
    throw new InterruptedError(
      'stopped in the middle of long work on the mirror, which is taken up again later',
    )
  }

  const addRows = connection.prepare(
    'UPDATE sync_jobs SET rows = rows + ? WHERE organization_id = ? AND collection = ?',
  )
  // One that is configured for a process that began earlier, and was forgotten since.
  const addOrganization = connection.prepare(
    'INSERT OR IGNORE INTO organizations (id, name, configured) VALUES (?, ?, 1)',
  )
  const saveReject = connection.prepare(`
    INSERT INTO sync_rejects (organization_id, collection, page, reason, json, seen_at, fingerprint)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (organization_id, collection, fingerprint) DO UPDATE SET seen_at = excluded.seen_at
  `)

  function saveItem(
    job: Job,
    tables: CollectionTables,
    entry: SightedItem,
    page: Page,
    at: string,
    saved: SavedPage,
  ): void {
    const { organization, collection } = job
    const { text } = entry.item
    if ('reject' in entry) {
      saveReject.run(organization.id, collection.name, page.number, entry.reject, text, at, entry.mark)
      saved.rejected++
      return
    }
    const row = tables.find(organization.id, entry.key)
    if (row?._json === text) return
    const value = objectOf(entry.item)
    if (!row) {
      saved.notices.push(...tables.insert(organization.id, entry.key, text, value, at))
      saved.added++
    } else if (!sameJson(parseExact(row._json), value, new Set(collection.ignore))) {
      const keep = collection.history !== false
      saved.notices.push(...tables.update(organization.id, entry.key, row, text, value, at, keep))
      saved.changed++
    }
  }

  return {
    claimJob: ({ organization, collection }) =>
      transact(() => {
        addOrganization.run(organization.id, organization.name)
        return owners.take(organization.id, collection.name)
      }),
    releaseJob: ({ organization, collection }) =>
      transact(() => owners.release(organization.id, collection.name)),

    openWalks: async (job) => guarded(file, () => walks.open(job)),
    beginWalk: (job, beginning) => transact(() => walks.begin(job, beginning, time())),
    async resumeWalk(walkId) {
      const walk = guarded(file, () => walks.resume(walkId))
      let ordinal: number | null = 0
      await toTheEnd((pages) => {
        ordinal = guarded(file, () => walks.recall(walkId, ordinal ?? 0, pages))
        return ordinal === null
      })
      return walk
    },
    cancelRun: (runId) => transact(() => runs.cancel(runId)),
    beginRun: (job, walk, trigger) => transact(() => runs.begin(job, walk, trigger, time())),

    assertKey: async (job) =>
      guarded(file, () => {
        assertKey(connection, job.collection.name, keyPathsOf(job))
      }),
    sight: async (job, walk, from, page) =>
      guarded(file, () => {
        const entries = sightItems(job, page, keyPathsOf(job))
        const before = entries.map(({ mark }) => walks.whereSeen(walk.id, mark))
        return sightingOf(entries, before, from, walks.nextOrdinal(walk.id), walks.seenLedger(walk.id))
      }),

    async savePage(job, walk, run, page, sighting, next) {
      let saved = nothingSaved()
      // In one transaction, after as many as it takes to make room for the page's keys.
      await toTheEnd((rows) =>
        transact(() => {
          const at = time()
          saved = nothingSaved()
          const tables = collections.open(job.collection.name, keyPathsOf(job))
          const hasRoom = tables.admitKeys(keysOf(sighting), at, rows)
          if (hasRoom) {
            for (const entry of sighting.entries) saveItem(job, tables, entry, page, at, saved)
            saved.notices.push(...rejectNotice(sighting, page))
            walks.addAnswer(walk.id, ledgerLine(page, sighting), next, at)
            runs.addPage(run, page.items.length, saved)
            if (saved.added > 0) addRows.run(saved.added, job.organization.id, job.collection.name)
          }
          collections.keep()
          return hasRoom
        }),
      )
      return saved
    },

    saveCheckpoint: (walk, next) => transact(() => walks.saveCheckpoint(walk.id, next, time())),
    completeWalk: (walk, coverage) => transact(() => walks.complete(walk.id, coverage, time())),
    abandonWalk: (walkId) => transact(() => walks.abandon(walkId, time())),
    finishRun: (run, outcome) => transact(() => runs.finish(run, outcome, time())),
    async prune(job) {
      const before = new Date(now() - keepRuns).toISOString()
      // What is left when the process is told to stop goes after the next run.
      await inSteps(patience, (rows) => transact(() => pruning.step(job, before, rows)))
      await inSteps(patience, (rows) =>
        transact(() => {
          const isTidy = collections.open(job.collection.name, keyPathsOf(job)).tidy(time(), rows)
          collections.keep()
          return isTidy
        }),
      )
    },
  }
}

/** What the log says of items that cannot be placed: how many, and why the first one. */
function rejectNotice({ entries }: Sighting, page: Page): Notice[] {
  const reasons = entries.flatMap((entry) => ('reject' in entry ? [entry.reject] : []))
  if (reasons.length === 0) return []
  const many = `${counted(reasons.length, 'item')} of page ${page.number} cannot be placed`
  return [{ level: 'warn', message: `${many} (${reasons[0]}), and kept in sync_rejects alone` }]
}

function nothingSaved(): SavedPage {
  return { added: 0, changed: 0, rejected: 0, notices: [] }
}

function keysOf({ entries }: Sighting): (readonly KeyPart[])[] {
  return entries.flatMap((entry) => ('key' in entry ? [entry.key] : []))
}

/**
 * The open tables of the collections, as long as nobody changed the schema: another process may have added a column,
 * and a transaction that was undone took its columns with it.
 */
function createCollectionCache(connection: Connection) {
  const known = new Map<string, CollectionTables>()
  let version = -1
  const versionNow = () => connection.pragma('schema_version', { simple: true }) as number
  return {
    open(name: string, keyPaths: string[][]): CollectionTables {
      if (versionNow() !== version) known.clear()
      const tables = known.get(name) ?? openCollection(connection, name, keyPaths)
      known.set(name, tables)
      version = versionNow()
      return tables
    },
    /** What this transaction itself did to the schema is known already. */
    keep(): void {
      version = versionNow()
    },
    forget(): void {
      known.clear()
      version = -1
    },
  }
}
