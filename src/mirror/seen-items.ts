import type { Connection, Statement } from './database.ts'

/**
 * Where open walks have seen each item last, which is asked for each item of each page. Each walk has a temporary table:
 * it costs the mirror's own file nothing, and memory no more than SQLite's cache, the ledger can bring it back at any
 * time, and to drop it takes no time, however many items stand in it.
 */
export interface SeenItems {
  begin(walkId: number): void
  /** Recalls what up to so many pages of the ledger say, those after this one. Returns the last of them; null at the ledger's end. */
  recall(walkId: number, afterOrdinal: number, pages: number): number | null
  where(walkId: number, mark: string): { pass: number; page: number } | undefined
  add(walkId: number, mark: string, pass: number, page: number): void
  forget(walkId: number): void
}

interface Statements {
  where: Statement
  add: Statement
}

export function createSeenItems(connection: Connection): SeenItems {
  const known = new Map<number, Statements>()
  const nextPages = connection.prepare(`
    SELECT max(ordinal) AS last, count(*) AS count
    FROM (SELECT ordinal FROM sync_pages WHERE walk_id = ? AND ordinal > ? ORDER BY ordinal LIMIT ?)
  `)

  function statementsOf(walkId: number): Statements {
    const statements = known.get(walkId) ?? {
      where: connection.prepare(`SELECT pass, page FROM ${tableOf(walkId)} WHERE mark = ?`),
      add: connection.prepare(
        `INSERT OR REPLACE INTO ${tableOf(walkId)} (mark, pass, page) VALUES (?, ?, ?)`,
      ),
    }
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
          page INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID
      `)
    },
    recall(walkId, afterOrdinal, pages) {
      const { last, count } = nextPages.get(walkId, afterOrdinal, pages) as { last: number; count: number }
      // In the order of the ledger: of an item that was seen twice the later line counts.
      const recall = connection.prepare(`
        INSERT OR REPLACE INTO ${tableOf(walkId)} (mark, pass, page)
        SELECT mark.value, sync_pages.pass, sync_pages.page
        FROM sync_pages
        CROSS JOIN json_each(sync_pages.keys) AS mark
        WHERE sync_pages.walk_id = ? AND sync_pages.ordinal > ? AND sync_pages.ordinal <= ?
        ORDER BY sync_pages.ordinal
      `)
      recall.run(walkId, afterOrdinal, last)
      return count < pages ? null : last
    },
    where: (walkId, mark) =>
      statementsOf(walkId).where.get(mark) as { pass: number; page: number } | undefined,
    add: (walkId, mark, pass, page) => {
      statementsOf(walkId).add.run(mark, pass, page)
    },
    forget,
  }
}

function tableOf(walkId: number): string {
  return `temp._seen_items_${walkId}`
}
