import { InterruptedError } from '../../../errors.ts'
import {
  deleteHoldings,
  endJob,
  forgetOrganization,
  type Holdings,
  holdingsOf,
  markForgotten,
} from '../../core/forget.ts'
import type { JobNames } from '../../core/jobs.ts'
import { runRule, SQLITE } from '../driver.ts'
import type { Leases } from '../leases.ts'
import { type Connection, quoted } from '../sql.ts'
import { knownKey } from '../tables/column-records.ts'
import {
  type ConfiguredCollection,
  dropTables,
  hasBelongings,
  isWithoutRows,
  makeConfigured,
} from '../tables/configured.ts'
import { declarationOf, KINDS, tableName } from '../tables/declarations.ts'
import { dropFormerCopy } from '../tables/rebuild-table.ts'
import { inBatches, type Patience, type Transact } from '../transaction.ts'

/** Deletes what the mirror holds of jobs and organizations, from the file's free database pages too. */
export interface Forgetting {
  /** Overwrites what syncs deleted before. Call it first, while the free pages are few. */
  blank(): Promise<void>
  /**
   * Forgets a job, unless another process works on it. After a kill the list looks as if it was never read,
   * and the next call does the rest. Throws InterruptedError after the signal to stop.
   * @param isConfigured Keeps the row of the job, as of one without rows, since a sync will need it.
   */
  job(job: JobNames, isConfigured: boolean): Promise<Forgotten>
  /**
   * Deletes an unconfigured organization once it has no jobs, with its hold: nothing sends its token, and
   * organizations with the same token have holds of their own. Never call it for a configured one, whose
   * refused token would be sent again.
   */
  organization(organizationId: string): Promise<void>
}

export type Forgotten = { owner: string } | { owner: null; gone: Holdings; isCollectionGone: boolean }

export interface ForgettingOptions extends Pick<Patience, 'now' | 'sleep' | 'signal'> {
  /** Their tables are recreated, empty. */
  configured: readonly ConfiguredCollection[]
  connection: Connection
  leases: Leases
  transact: Transact
}

/** Rows, or database pages, of one transaction: few, since it also overwrites them. */
const MOST_ROWS = 500

export function createForgetting({
  connection,
  leases,
  transact,
  configured,
  ...patience
}: ForgettingOptions): Forgetting {
  // Overwrites deleted rows with zeros.
  connection.pragma('secure_delete = ON')
  const time = () => new Date(patience.now()).toISOString()

  async function runSteps(step: (rows: number) => boolean): Promise<void> {
    if (await inBatches(patience, () => transact(() => step(MOST_ROWS)))) return
    throw new InterruptedError('stopped before everything was forgotten; the same command continues')
  }

  async function forgetOwned(job: JobNames, isConfigured: boolean): Promise<Forgotten> {
    const gone = await transact(() => {
      const held = runRule(connection, holdingsOf(SQLITE, job))
      runRule(connection, markForgotten(job, time()))
      return held
    })
    await runSteps((rows) => runRule(connection, deleteHoldings(SQLITE, job, rows)))
    const isCollectionGone = await transact(() => {
      for (const kind of KINDS) dropFormerCopy(connection, tableName(job.collection, kind))
      runRule(connection, endJob(job, isConfigured))
      const isGone = dropUnused(connection, job.collection)
      makeConfigured(connection, configured)
      return isGone
    })
    return { owner: null, gone, isCollectionGone }
  }

  return {
    async blank() {
      await runSteps(createBlanking(connection))
    },
    async job(job, isConfigured) {
      const owner = await transact(() => leases.take(job))
      if (owner !== null) return { owner }
      try {
        return await forgetOwned(job, isConfigured)
      } finally {
        await transact(() => leases.release(job))
      }
    },
    organization: (id) => transact(() => runRule(connection, forgetOrganization(id))),
  }
}

/**
 * Drops a collection's tables if nothing is left of it: its key can change then. Not those that a user has given an index or a
 * trigger, which would go with them. Returns whether it did.
 */
function dropUnused(connection: Connection, collection: string): boolean {
  const rejects = connection.prepare('SELECT 1 FROM sync_rejects WHERE collection = ? LIMIT 1')
  const isUnused =
    knownKey(connection, collection) !== null &&
    isWithoutRows(connection, collection) &&
    rejects.get(collection) === undefined &&
    !hasBelongings(connection, collection)
  if (isUnused) dropTables(connection, collection)
  return isUnused
}

const FREE_PAGES = '_free_pages'

/** Bytes of an overflow page without content: the number of the next page. */
const LINK_BYTES = 4

/** The largest value of one row, in database pages. */
const MOST_PAGES = 256

/**
 * Returns a function that overwrites up to so many free database pages, which may still hold deleted rows,
 * and returns true when none is left. It fills them with a table of zeros and frees them again, on a
 * connection with `secure_delete`. A killed process leaves that table; the next one continues with it.
 */
function createBlanking(connection: Connection): (pages: number) => boolean {
  let isFull = false
  const number = (pragma: string) => connection.pragma(pragma, { simple: true }) as number

  function fill(pages: number): void {
    connection.exec(`CREATE TABLE IF NOT EXISTS ${quoted(FREE_PAGES)} (zeros BLOB NOT NULL)`)
    const write = connection.prepare(`INSERT INTO ${quoted(FREE_PAGES)} VALUES (zeroblob(?))`)
    const size = number('page_size') - LINK_BYTES
    for (let left = pages; left > 0 && !isFull; left -= MOST_PAGES) {
      const free = number('freelist_count')
      if (free > 0) write.run(Math.min(free, MOST_PAGES, left) * size)
      isFull = number('freelist_count') === 0
    }
  }

  function empty(pages: number): boolean {
    const rows = Math.max(1, Math.floor(pages / MOST_PAGES))
    const remove = connection.prepare(
      `DELETE FROM ${quoted(FREE_PAGES)} WHERE _rowid_ IN (SELECT _rowid_ FROM ${quoted(FREE_PAGES)} LIMIT ?)`,
    )
    if (remove.run(rows).changes === rows) return false
    connection.exec(`DROP TABLE ${quoted(FREE_PAGES)}`)
    return true
  }

  return (pages) => {
    if (isFull) return declarationOf(connection, FREE_PAGES) === undefined || empty(pages)
    const isNeeded = number('freelist_count') > 0 || declarationOf(connection, FREE_PAGES) !== undefined
    if (isNeeded) fill(pages)
    return !isNeeded
  }
}
