import { InterruptedError } from '../../../errors.ts'
import type { Leases } from '../leases.ts'
import type { Connection } from '../sql.ts'
import { knownKey } from '../tables/column-records.ts'
import { type ConfiguredCollection, dropTables, isWithoutRows, makeConfigured } from '../tables/configured.ts'
import { KINDS, tableName } from '../tables/declarations.ts'
import { dropFormerCopy } from '../tables/rebuild-table.ts'
import { inBatches, type Patience, type Transact } from '../transaction.ts'
import { createBlanking } from './free-pages.ts'
import { deleteHoldings, disown, type ForgottenJob, type Holdings, holdingsOf } from './holdings.ts'

/** Deletes what the mirror holds of jobs and organizations, so that it is not left in the file's free pages either. */
export interface Forgetting {
  /** Blanks what was deleted before, by syncs that do not overwrite it: to be done first, while that is little. */
  blank(): Promise<void>
  /**
   * Forgets a job, unless another process is working on it. Killed half-way it leaves a list that looks like one that was
   * never read, and goes on when it is asked for again. Throws InterruptedError when the process is told to stop.
   * @param isConfigured Whether a sync will want the job again: then its line stays, as that of a job without rows.
   */
  job(job: ForgottenJob, isConfigured: boolean): Promise<Forgotten>
  /**
   * The line of an organization that is not configured, once no job of it is left. Its hold goes with it: nothing sends
   * its token any more, and other organizations that use the same one have holds of their own. That of a configured one
   * stays, since a refused token must not be sent again because somebody forgot rows.
   */
  organization(organizationId: string): Promise<void>
}

export type Forgotten = { owner: string } | { owner: null; gone: Holdings; isCollectionGone: boolean }

export interface ForgettingOptions extends Pick<Patience, 'now' | 'sleep' | 'signal'> {
  /** Their tables are made again, empty. */
  configured: readonly ConfiguredCollection[]
  connection: Connection
  leases: Leases
  transact: Transact
}

/** Rows, or pages, of one step: they are overwritten, too, which a commit has to write. */
const MOST_ROWS = 500

export function createForgetting({
  connection,
  leases,
  transact,
  configured,
  ...patience
}: ForgettingOptions): Forgetting {
  // What is deleted is overwritten with zeros.
  connection.pragma('secure_delete = ON')
  const time = () => new Date(patience.now()).toISOString()

  async function toTheEnd(step: (rows: number) => boolean): Promise<void> {
    if (await inBatches(patience, () => transact(() => step(MOST_ROWS)))) return
    throw new InterruptedError('stopped before everything was forgotten; the same command goes on with it')
  }

  async function forgetOwned(job: ForgottenJob, isConfigured: boolean): Promise<Forgotten> {
    const gone = await transact(() => {
      const held = holdingsOf(connection, job)
      disown(connection, job, time())
      return held
    })
    await toTheEnd((rows) => deleteHoldings(connection, job, rows))
    const isCollectionGone = await transact(() => {
      for (const kind of KINDS) dropFormerCopy(connection, tableName(job.collection, kind))
      endJob(connection, job, isConfigured)
      const isGone = dropUnused(connection, job.collection)
      makeConfigured(connection, configured)
      return isGone
    })
    return { owner: null, gone, isCollectionGone }
  }

  return {
    async blank() {
      const blanking = createBlanking(connection)
      await toTheEnd((pages) => blanking.step(pages))
    },
    async job(job, isConfigured) {
      const { organizationId, collection } = job
      const owner = await transact(() => leases.take(organizationId, collection))
      if (owner !== null) return { owner }
      try {
        return await forgetOwned(job, isConfigured)
      } finally {
        await transact(() => leases.release(organizationId, collection))
      }
    },
    organization: (organizationId) =>
      transact(() => {
        const jobs = connection.prepare('SELECT 1 FROM sync_jobs WHERE organization_id = ?')
        if (jobs.get(organizationId) !== undefined) return
        connection.prepare('DELETE FROM organizations WHERE id = ?').run(organizationId)
        connection.prepare('DELETE FROM sync_gates WHERE scope = ?').run(organizationId)
      }),
  }
}

function endJob(
  connection: Connection,
  { organizationId, collection }: ForgottenJob,
  isConfigured: boolean,
): void {
  const ofJob = 'organization_id = ? AND collection = ?'
  if (isConfigured)
    connection.prepare(`UPDATE sync_jobs SET rows = 0 WHERE ${ofJob}`).run(organizationId, collection)
  else connection.prepare(`DELETE FROM sync_jobs WHERE ${ofJob}`).run(organizationId, collection)
}

/**
 * The tables and views of a collection that nothing is left of, and what is known of its columns: its key can be another
 * one from now on.
 */
function dropUnused(connection: Connection, collection: string): boolean {
  const rejects = connection.prepare('SELECT 1 FROM sync_rejects WHERE collection = ? LIMIT 1')
  const isUnused =
    knownKey(connection, collection) !== null &&
    isWithoutRows(connection, collection) &&
    rejects.get(collection) === undefined
  if (isUnused) dropTables(connection, collection)
  return isUnused
}
