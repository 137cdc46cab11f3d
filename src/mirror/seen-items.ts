import type { Place } from '../sync/coverage/account.ts'
import type { Connection, Statement } from './database.ts'
import type { Ledger } from './placing.ts'

/** Where an item stands that a walk has seen, and in which of its passes. */
export interface SeenPlace extends Place {
  pass: number
}

/**
 * Where the items stand that open walks have seen, which is asked for each item of each page. Each walk has a temporary
 * table: it costs the mirror's own file nothing, and memory no more than SQLite's cache, the ledger can bring it back at
 * any time, and to drop it takes no time, however many items stand in it.
 */
export interface SeenItems {
  begin(walkId: number): void
  /** Recalls what up to so many pages of the ledger say, those after this one. Returns the last of them; null at the ledger's end. */
  recall(walkId: number, afterOrdinal: number, pages: number): number | null
  where(walkId: number, mark: string): SeenPlace | undefined
  add(walkId: number, mark: string, place: SeenPlace): void
  /** How many of them could not be placed. */
  rejects(walkId: number): number
  ledger(walkId: number): Ledger
  forget(walkId: number): void
}

interface Statements
  extends Record<'where' | 'add' | 'after' | 'before' | 'first' | 'count' | 'rejects', Statement> {}

export function createSeenItems(connection: Connection): SeenItems {
  const known = new Map<number, Statements>()
  const lastOf = connection
    .prepare(`
      SELECT max(ordinal)
      FROM (SELECT ordinal FROM sync_pages WHERE walk_id = ? AND ordinal > ? ORDER BY ordinal LIMIT ?)
    `)
    .pluck()

  function statementsOf(walkId: number): Statements {
    const statements = known.get(walkId) ?? prepare(connection, tableOf(walkId))
    known.set(walkId, statements)
    return statements
  }

  function forget(walkId: number): void {
    known.delete(walkId)
    connection.exec(`DROP TABLE IF EXISTS ${tableOf(walkId)}`)
  }

  return {
    begin(walkId) {
      forget(walkId)
      connection.exec(`
        CREATE TABLE ${tableOf(walkId)} (
          mark TEXT NOT NULL PRIMARY KEY,
          pass INTEGER NOT NULL,
          segment INTEGER NOT NULL,
          position REAL NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX temp._places_of_items_${walkId} ON _seen_items_${walkId} (segment, position)
      `)
    },
    recall(walkId, afterOrdinal, pages) {
      const last = lastOf.get(walkId, afterOrdinal, pages) as number | null
      if (last === null) return null
      // In the order of the ledger: of an item that was seen twice the later line counts, unless it only found it again.
      const recall = connection.prepare(`
        INSERT OR REPLACE INTO ${tableOf(walkId)} (mark, pass, segment, position)
        SELECT
          mark.value,
          sync_pages.pass,
          coalesce(json_extract(sync_pages.places, '$[' || mark.key || '][0]'), sync_pages.ordinal),
          coalesce(json_extract(sync_pages.places, '$[' || mark.key || '][1]'), mark.key)
        FROM sync_pages
        CROSS JOIN json_each(sync_pages.keys) AS mark
        WHERE sync_pages.walk_id = ? AND sync_pages.ordinal > ? AND sync_pages.ordinal <= ?
          AND (sync_pages.places IS NULL OR json_type(sync_pages.places, '$[' || mark.key || ']') = 'array')
        ORDER BY sync_pages.ordinal
      `)
      recall.run(walkId, afterOrdinal, last)
      return last
    },
    where: (walkId, mark) => statementsOf(walkId).where.get(mark) as SeenPlace | undefined,
    add: (walkId, mark, { pass, segment, position }) => {
      statementsOf(walkId).add.run(mark, pass, segment, position)
    },
    rejects: (walkId) => statementsOf(walkId).rejects.get() as number,
    ledger(walkId) {
      const { after, before, first, count } = statementsOf(walkId)
      return {
        after: ({ segment, position }) => after.get(segment, position) as number | null,
        before: ({ segment, position }) => before.get(segment, position) as number | null,
        first: (segment) => first.get(segment) as number | null,
        distance: (from, to) => count.get(from.segment, from.position, to.segment, to.position) as number,
      }
    },
    forget,
  }
}

function prepare(connection: Connection, table: string): Statements {
  return {
    where: connection.prepare(`SELECT pass, segment, position FROM ${table} WHERE mark = ?`),
    add: connection.prepare(
      `INSERT OR REPLACE INTO ${table} (mark, pass, segment, position) VALUES (?, ?, ?, ?)`,
    ),
    after: connection
      .prepare(`SELECT min(position) FROM ${table} WHERE segment = ? AND position > ?`)
      .pluck(),
    before: connection
      .prepare(`SELECT max(position) FROM ${table} WHERE segment = ? AND position < ?`)
      .pluck(),
    first: connection.prepare(`SELECT min(position) FROM ${table} WHERE segment = ?`).pluck(),
    // The marks of rejects begin with NUL, and no key does.
    rejects: connection.prepare(`SELECT count(*) FROM ${table} WHERE mark < char(1)`).pluck(),
    // Behind the first place, up to the second and with it.
    count: connection
      .prepare(`
        SELECT count(*) FROM ${table} WHERE (segment, position) > (?, ?) AND (segment, position) <= (?, ?)
      `)
      .pluck(),
  }
}

function tableOf(walkId: number): string {
  return `temp._seen_items_${walkId}`
}
