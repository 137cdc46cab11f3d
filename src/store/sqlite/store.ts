import { InterruptedError } from '../../errors.ts'
import type { Mirror } from '../../sync/mirror.ts'
import type { Job } from '../../sync/types.ts'
import { keyPathsOf } from '../columns/key.ts'
import { assertAddress } from './address.ts'
import { type Connection, createSchemaVersion, guarded } from './file/open.ts'
import type { Owners } from './leases.ts'
import { createMaintenance } from './maintenance.ts'
import { inSteps, SCATTERED } from './steps.ts'
import { type CollectionTables, openCollection } from './tables/collection.ts'
import { assertPossible } from './tables/configured.ts'
import { writeWithRoom } from './tables/room.ts'
import { createTransact, type Patience, type Transact } from './transaction.ts'
import { createPageSaving } from './walks/commit.ts'
import { createJobStore } from './walks/jobs.ts'
import { createMissingStore } from './walks/missing.ts'
import { createPruning } from './walks/prune.ts'
import { createJudging } from './walks/removals.ts'
import { createRunStore } from './walks/runs.ts'
import { createSeenSince } from './walks/seen-since.ts'
import { createWalkStore } from './walks/walks.ts'

export interface MirrorOptions extends Patience {
  connection: Connection
  file: string
  /** `api.baseUrl`: as soon as the mirror holds the lists of another address, no job begins any more. */
  baseUrl: string
  owners: Owners
  /** How long lines of `sync_runs` and closed walks are kept, in milliseconds. */
  keepRuns: number
}

/** The mirror for writing. Every method is one transaction, and throws MirrorError when the file cannot be used. */
export function createMirror({
  connection,
  file,
  baseUrl,
  owners,
  keepRuns,
  ...patience
}: MirrorOptions): Mirror {
  const { now } = patience
  const walks = createWalkStore(connection)
  const runs = createRunStore(connection)
  const jobs = createJobStore(connection)
  const missing = createMissingStore(connection)
  const seenSince = createSeenSince(connection)
  const pruning = createPruning(connection)
  const collections = createCollectionCache(connection)
  const write = createTransact({ connection, file, ...patience, onRollback: collections.forget })
  const maintain = createMaintenance({ file, ...patience })
  const transact: Transact = (task, kind) =>
    write(() => {
      owners.assertAlive()
      return task()
    }, kind)
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
  const room = { connection, transact, maintain, time }
  const openTables = (job: Job) => collections.open(job.collection.name, keyPathsOf(job))
  const judging = createJudging({
    connection,
    transact,
    read: (task) => guarded(file, task),
    toTheEnd,
    time,
    runs,
    jobs,
    missing,
    seenSince,
    openTables,
  })

  return {
    claimJob: ({ organization, collection }) =>
      transact(() => {
        assertAddress(connection, baseUrl)
        addOrganization.run(organization.id, organization.name)
        return owners.take(organization.id, collection.name)
      }),
    releaseJob: ({ organization, collection }) =>
      transact(() => owners.release(organization.id, collection.name)),

    openWalks: async (job) => guarded(file, () => walks.open(job)),
    beginWalk: (job, beginning) => transact(() => walks.begin(job, beginning, time())),
    resumeWalk: (walkId) => transact(() => walks.resume(walkId, time())),
    readLedger: async (walkId, after) => guarded(file, () => walks.readLedger(walkId, after)),
    cancelRun: (runId) => transact(() => runs.cancel(runId)),
    beginRun: (job, walk, trigger) => transact(() => runs.begin(job, walk, trigger, time())),

    assertKey: async (job) =>
      guarded(file, () => {
        assertPossible(connection, job.collection.name, keyPathsOf(job))
      }),

    async savePage(commit) {
      const { result, notices } = await writeWithRoom(room, commit.job.collection.name, () => {
        const outcome = savePage(commit, openTables(commit.job), time())
        if (outcome.changes) collections.forget()
        else collections.keep()
        return outcome
      })
      return { ...result, notices: [...notices, ...result.notices] }
    },

    saveCheckpoint: (walk, next) => transact(() => walks.saveCheckpoint(walk.id, next, time())),
    newRejects: async (walk) => guarded(file, () => walks.newRejects(walk.id)),
    ...judging,
    completeWalk: (job, walk, outcome) =>
      transact(() => {
        walks.complete(walk.id, outcome, time())
        if (walk.kind === 'full' && outcome.untrusted === null) jobs.confirm(job, walk.id)
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
    },
  }
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
