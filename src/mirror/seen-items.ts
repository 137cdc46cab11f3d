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
 * any time, and to empty it takes no time, however many items stand in it. The next walk takes it over: whenever a
 * temporary table is made or dropped, SQLite compiles every statement of the connection anew.
 */
export interface SeenItems {
  begin(walkId: number): void
  /** Recalls what up to so many pages of the ledger say, those after this one. Returns the last of them; null at the ledger's end. */
  recall(walkId: number, afterOrdinal: number, pages: number): number | null
  where(walkId: number, mark: string): SeenPlace | undefined
  /** The same for a whole page: one question takes half as long as one for each item. */
  whereAll(walkId: number, marks: readonly string[]): (SeenPlace | undefined)[]
  add(walkId: number, mark: string, place: SeenPlace): void
  /** Adds items that follow each other from the beginning of a segment. */
  addSegment(walkId: number, pass: number, segment: number, marks: readonly string[]): void
  /** How many of them could not be placed. */
  rejects(walkId: number): number
  ledger(walkId: number): Ledger
  forget(walkId: number): void
}

interface Table {
  name: string
  items: ItemStatements
  /** Prepared when it is asked for: only a list that moves needs them. */
  order: OrderStatements | null
}

type ItemStatements = Record<'where' | 'whereAll' | 'add' | 'addSegment' | 'rejects' | 'clear', Statement>
type OrderStatements = Record<'after' | 'before' | 'first' | 'count', Statement>

export function createSeenItems(connection: Connection): SeenItems {
  const taken = new Map<number, Table>()
  const free: Table[] = []
  const lastOf = connection
    .prepare(`
      SELECT max(ordinal)
      FROM (SELECT ordinal FROM sync_pages WHERE walk_id = ? AND ordinal > ? ORDER BY ordinal LIMIT ?)
    `)
    .pluck()

  function tableOf(walkId: number): Table {
    const table = taken.get(walkId)
    if (!table) throw new Error(`walk ${walkId} has not begun`)
    return table
  }

  function orderOf(walkId: number): OrderStatements {
    const table = tableOf(walkId)
    table.order ??= prepareOrder(connection, table.name)
    return table.order
  }

  function makeTable(): Table {
    // None is free, so those that are taken are all there are.
    const name = `_seen_items_${taken.size + 1}`
    create(connection, name)
    return { name, items: prepareItems(connection, name), order: null }
  }

  return {
    begin(walkId) {
      const table = taken.get(walkId) ?? free.pop() ?? makeTable()
      taken.set(walkId, table)
      // A transaction that was undone has taken the table with it, or brought back what stood in it.
      create(connection, table.name)
      table.items.clear.run()
    },
    recall(walkId, afterOrdinal, pages) {
      const last = lastOf.get(walkId, afterOrdinal, pages) as number | null
      if (last === null) return null
      // In the order of the ledger: of an item that was seen twice the later line counts, unless it only found it again.
      const recall = connection.prepare(`
        INSERT OR REPLACE INTO temp.${tableOf(walkId).name} (mark, pass, segment, position)
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
    where: (walkId, mark) => tableOf(walkId).items.where.get(mark) as SeenPlace | undefined,
    whereAll(walkId, marks) {
      const places: (SeenPlace | undefined)[] = marks.map(() => undefined)
      const known = tableOf(walkId).items.whereAll.all(JSON.stringify(marks)) as (SeenPlace & {
        at: number
      })[]
      for (const { at, ...place } of known) places[at] = place
      return places
    },
    add: (walkId, mark, { pass, segment, position }) => {
      tableOf(walkId).items.add.run(mark, pass, segment, position)
    },
    addSegment: (walkId, pass, segment, marks) => {
      tableOf(walkId).items.addSegment.run(pass, segment, JSON.stringify(marks))
    },
    rejects: (walkId) => tableOf(walkId).items.rejects.get() as number,
    ledger: (walkId) => ({
      after: ({ segment, position }) => orderOf(walkId).after.get(segment, position) as number | null,
      before: ({ segment, position }) => orderOf(walkId).before.get(segment, position) as number | null,
      first: (segment) => orderOf(walkId).first.get(segment) as number | null,
      distance: (from, to) =>
        orderOf(walkId).count.get(from.segment, from.position, to.segment, to.position) as number,
    }),
    forget(walkId) {
      const table = taken.get(walkId)
      if (!table) return
      table.items.clear.run()
      taken.delete(walkId)
      free.push(table)
    },
  }
}

function create(connection: Connection, name: string): void {
  connection.exec(`
    CREATE TABLE IF NOT EXISTS temp.${name} (
      mark TEXT NOT NULL PRIMARY KEY,
      pass INTEGER NOT NULL,
      segment INTEGER NOT NULL,
      position REAL NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS temp.${name}_by_place ON ${name} (segment, position)
  `)
}

function prepareItems(connection: Connection, name: string): ItemStatements {
  const table = `temp.${name}`
  const insert = `INSERT OR REPLACE INTO ${table} (mark, pass, segment, position)`
  return {
    where: connection.prepare(`SELECT pass, segment, position FROM ${table} WHERE mark = ?`),
    whereAll: connection.prepare(`
      SELECT page.key AS at, pass, segment, position
      FROM json_each(?) AS page
      CROSS JOIN ${table} ON mark = page.value
    `),
    add: connection.prepare(`${insert} VALUES (?, ?, ?, ?)`),
    addSegment: connection.prepare(`${insert} SELECT value, ?, ?, key FROM json_each(?)`),
    // The marks of rejects begin with NUL, and no key does.
    rejects: connection.prepare(`SELECT count(*) FROM ${table} WHERE mark < char(1)`).pluck(),
    clear: connection.prepare(`DELETE FROM ${table}`),
  }
}

function prepareOrder(connection: Connection, name: string): OrderStatements {
  const table = `temp.${name}`
  return {
    after: connection
      .prepare(`SELECT min(position) FROM ${table} WHERE segment = ? AND position > ?`)
      .pluck(),
    before: connection
      .prepare(`SELECT max(position) FROM ${table} WHERE segment = ? AND position < ?`)
      .pluck(),
    first: connection.prepare(`SELECT min(position) FROM ${table} WHERE segment = ?`).pluck(),
    // Behind the first place, up to the second and with it.
    count: connection
      .prepare(`
        SELECT count(*) FROM ${table} WHERE (segment, position) > (?, ?) AND (segment, position) <= (?, ?)
      `)
      .pluck(),
  }
}
