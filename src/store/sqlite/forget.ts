import { InterruptedError } from '../../errors.ts'
import { dropCollection } from '../core/collections.ts'
import { createForgetting, isUnused } from '../core/forget.ts'
import { quoted } from '../core/sql.ts'
import type { ConfiguredCollection } from '../core/tables.ts'
import { type Connection, runRule, SQLITE } from './driver.ts'
import type { Leases } from './leases.ts'
import { declarationOf } from './tables/alter.ts'
import { hasBelongings, makeConfigured } from './tables/collection.ts'
import { inBatches, type Patience, runnerOn, type Transact } from './transaction.ts'

export interface ForgettingOptions extends Pick<Patience, 'now' | 'sleep' | 'signal'> {
  /** Their tables are recreated, empty. */
  configured: readonly ConfiguredCollection[]
  connection: Connection
  leases: Leases
  transact: Transact
}

/** Rows, or database pages, of one transaction: few, since it also overwrites them. */
const FORGOTTEN_AT_ONCE = 500

/** Forgets in a file, from its free database pages too. */
export function createFileForgetting({
  connection,
  leases,
  transact,
  configured,
  ...patience
}: ForgettingOptions) {
  // Overwrites deleted rows with zeros.
  connection.pragma('secure_delete = ON')
  const forgetting = createForgetting({
    ...runnerOn(connection, transact, patience),
    take: (job) =>
      transact(() => {
        const owner = leases.take(job)
        return owner ?? { job, name: `${job.organization} ${job.collection}`, epoch: 0 }
      }),
    release: ({ job }) => transact(() => leases.release(job)),
    batchRows: FORGOTTEN_AT_ONCE,
    dropUnused: (collection) =>
      transact(() => {
        // A user's index or trigger would go with the tables.
        const isDropped = runRule(connection, isUnused(collection)) && !hasBelongings(connection, collection)
        if (isDropped) runRule(connection, dropCollection(SQLITE, collection))
        makeConfigured(connection, configured)
        return isDropped
      }),
  })
  return {
    ...forgetting,
    /** Overwrites what syncs deleted before. Call it first, while the free database pages are few. */
    async blank() {
      const blank = createBlanking(connection)
      if (await inBatches(patience, () => transact(() => blank(FORGOTTEN_AT_ONCE)))) return
      throw new InterruptedError('stopped before everything was forgotten; the same command continues')
    },
  }
}

const FREE_PAGES = '_free_pages'

/** Bytes of an overflow page without content: the number of the next page. */
const LINK_BYTES = 4

/** The largest value of one row, in database pages. */
const ROW_PAGES = 256

/**
 * Returns a function that overwrites at most `pages` free database pages, which may still hold deleted rows,
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
    for (let left = pages; left > 0 && !isFull; left -= ROW_PAGES) {
      const free = number('freelist_count')
      if (free > 0) write.run(Math.min(free, ROW_PAGES, left) * size)
      isFull = number('freelist_count') === 0
    }
  }

  function empty(pages: number): boolean {
    const rows = Math.max(1, Math.floor(pages / ROW_PAGES))
    const remove = connection.prepare(
      `DELETE FROM ${quoted(FREE_PAGES)} WHERE _rowid_ IN (SELECT _rowid_ FROM ${quoted(FREE_PAGES)} LIMIT ?)`,
    )
    if (remove.run(rows).changes === rows) return false
    connection.exec(`DROP TABLE ${quoted(FREE_PAGES)}`)
    return true
  }

  return (pages) => {
    const hasTable = runRule(connection, declarationOf(FREE_PAGES)) !== null
    if (isFull) return !hasTable || empty(pages)
    const isNeeded = number('freelist_count') > 0 || hasTable
    if (isNeeded) fill(pages)
    return !isNeeded
  }
}
