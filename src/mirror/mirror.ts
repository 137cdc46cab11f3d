import { InterruptedError } from '../errors.ts'
import type { Mirror } from '../sync/mirror.ts'
import type { Job, Recognize, Sighting } from '../sync/types.ts'
import { type CollectionTables, openCollection } from './collection.ts'
import { assertKey } from './column-records.ts'
import type { KeyPart } from './columns/key.ts'
import { type Connection, createSchemaVersion, guarded } from './database.ts'
import { createJobStore } from './job-store.ts'
import { createJudging } from './judging.ts'
import { createMissingStore } from './missing.ts'
import type { Owners } from './owners.ts'
import { sightingOf } from './placing.ts'
import { createPruning } from './pruning.ts'
import { followRawRows } from './raw-rows.ts'
import { recognizeItems } from './recognizing.ts'
import { createRunStore } from './run-store.ts'
import { createPageSaving, nothingSaved } from './saving.ts'
import { createSeenSince } from './seen-since.ts'
import { keyPathsOf, sightItems } from './sighting.ts'
import { inSteps, SCATTERED } from './steps.ts'
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

/** The mirror, which tells the API room of items that need not be read. */
export interface RecognizingMirror extends Mirror {
  /** Finds, of the texts of a page's items, those that the job's rows hold just so. */
  recognizer(job: Job): Recognize
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
}: MirrorOptions): RecognizingMirror {
  const walks = createWalkStore(connection)
  const runs = createRunStore(connection)
  const jobs = createJobStore(connection)
  const missing = createMissingStore(connection)
  const seenSince = createSeenSince(connection)
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

  async function toTheEnd(step: (rows: number) => boolean | Promise<boolean>, most?: number): Promise<void> {
    if (await inSteps(patience, step, most)) return
    throw new InterruptedError(
      'stopped in the middle of long work on the mirror, which is taken up again later',
    )
  }

  // One that is configured for a process that began earlier, and was forgotten since.
  const addOrganization = connection.prepare(
    'INSERT OR IGNORE INTO organizations (id, name, configured) VALUES (?, ?, 1)',
  )

  /** In steps that each begin with the versions that ended first. */
  async function pruneHistory(job: Job, before: string): Promise<void> {
    const step = (rows: number) => {
      const gone = openTables(job).pruneHistory(job.organization.id, before, rows)
      collections.keep()
      return gone < rows
    }
    await inSteps(patience, (rows) => transact(() => step(rows)), SCATTERED)
  }

  const savePage = createPageSaving({ connection, walks, runs, jobs, missing, seenSince })
  const openTables = (job: Job) => collections.open(job.collection.name, keyPathsOf(job))
  const judging = createJudging({
    connection,
    transact,
    read: (task) => guarded(file, task),
    toTheEnd,
    time,
    walks,
    runs,
    jobs,
    missing,
    seenSince,
    openTables,
  })

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
      const walk = await transact(() => walks.resume(walkId, time()))
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
    recognizer(job) {
      const rowsNow = followRawRows(connection, job)
      return async (texts) =>
        guarded(file, () => {
          const asOf = collections.known(job.collection.name)?.state() ?? {}
          const rows = rowsNow()
          return rows ? recognizeItems(rows, asOf, job, texts) : []
        })
    },
    sight: async (job, walk, from, page) =>
      guarded(file, () => {
        const entries = sightItems(job, page, keyPathsOf(job))
        const before = walks.whereAllSeen(
          walk.id,
          entries.map(({ mark }) => mark),
        )
        return sightingOf(entries, before, from, walks.nextOrdinal(walk.id), walks.seenLedger(walk.id))
      }),

    async savePage(job, walk, run, page, sighting, next) {
      let saved = nothingSaved()
      // In one transaction, after as many as it takes to make room for the page's keys.
      await toTheEnd((rows) =>
        transact(() => {
          const at = time()
          const tables = openTables(job)
          const hasRoom = tables.admitKeys(keysOf(sighting), at, rows)
          if (hasRoom) saved = savePage({ job, walk, run, page, sighting, next }, tables, at)
          collections.keep()
          return hasRoom
        }),
      )
      return saved
    },

    saveCheckpoint: (walk, next) => transact(() => walks.saveCheckpoint(walk.id, next, time())),
    newRejects: async (walk) => guarded(file, () => walks.tally(walk.id).newRejects),
    ...judging,
    completeWalk: (job, walk, coverage, untrusted) =>
      transact(() => {
        walks.complete(walk.id, coverage, untrusted, time())
        if (walk.kind === 'full' && untrusted === null) jobs.confirm(job, walk.id)
        return jobs.held(job)
      }),
    abandonWalk: (walkId) => transact(() => walks.abandon(walkId, time())),
    finishRun: (run, outcome) => transact(() => runs.finish(run, outcome, time())),
    async prune(job) {
      const before = new Date(now() - keepRuns).toISOString()
      // What is left when the process is told to stop goes after the next run.
      await inSteps(patience, (rows) => transact(() => pruning.step(job, before, rows)))
      const { history } = job.collection
      if (typeof history === 'number') await pruneHistory(job, new Date(now() - history).toISOString())
      await inSteps(patience, (rows) =>
        transact(() => {
          const isTidy = openTables(job).tidy(time(), rows)
          collections.keep()
          return isTidy
        }),
      )
    },
  }
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
  const versionNow = createSchemaVersion(connection)
  return {
    open(name: string, keyPaths: string[][]): CollectionTables {
      if (versionNow() !== version) known.clear()
      const tables = known.get(name) ?? openCollection(connection, name, keyPaths)
      known.set(name, tables)
      version = versionNow()
      return tables
    },
    /** The tables if they are open, and as they were opened. */
    known: (name: string): CollectionTables | undefined =>
      versionNow() === version ? known.get(name) : undefined,
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
