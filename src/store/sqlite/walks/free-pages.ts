import { type Connection, quoted } from '../sql.ts'
import { declarationOf } from '../tables/declarations.ts'

const TABLE = '_free_pages'

/** Bytes of an overflow page that hold no content: the number of the next one. */
const LINK_BYTES = 4

/** The largest value that is written at once, in pages. */
const MOST_PAGES = 256

/** Overwrites pages of the file that are not in use: what rows were deleted before may still stand there. */
export interface Blanking {
  /** Takes on up to so many pages. True when all are blank. */
  step(pages: number): boolean
}

/**
 * The free pages are taken into use, for a table of zeros, and given back. On a connection that has `secure_delete`
 * switched on. One that was killed half-way leaves that table, which the next one goes on with.
 */
export function createBlanking(connection: Connection): Blanking {
  let isFull = false
  const number = (pragma: string) => connection.pragma(pragma, { simple: true }) as number

  function fill(pages: number): void {
    connection.exec(`CREATE TABLE IF NOT EXISTS ${quoted(TABLE)} (zeros BLOB NOT NULL)`)
    const write = connection.prepare(`INSERT INTO ${quoted(TABLE)} VALUES (zeroblob(?))`)
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
      `DELETE FROM ${quoted(TABLE)} WHERE _rowid_ IN (SELECT _rowid_ FROM ${quoted(TABLE)} LIMIT ?)`,
    )
    if (remove.run(rows).changes === rows) return false
    connection.exec(`DROP TABLE ${quoted(TABLE)}`)
    return true
  }

  return {
    step(pages) {
      if (isFull) return declarationOf(connection, TABLE) === undefined || empty(pages)
      const isNeeded = number('freelist_count') > 0 || declarationOf(connection, TABLE) !== undefined
      if (isNeeded) fill(pages)
      return !isNeeded
    },
  }
}
