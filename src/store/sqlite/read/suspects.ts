import type { Difference } from '../../../sync/comparison.ts'
import type { Connection } from '../file/open.ts'

/** Differing paths of one item that are told; one more is kept, to tell that there are further ones. */
export const MOST_PATHS = 10

/** An item in which the list and the mirror seem to be apart. */
export interface Suspect {
  mark: string
  kind: Difference['kind']
  /** The page on which it stood; null for a row that stood on none. */
  page: number | null
  /** The item as it came. */
  json: string | null
  paths: readonly string[]
  /** Why it has no usable key. */
  reject: string | null
}

/** `moved`: it was seen to change, or to come or go, while the list was read; that is no difference. */
export type Judgement = 'suspected' | 'certain' | 'moved'

/**
 * The items that a comparison has its eye on, in a temporary table: so memory stays flat, however many there are, and
 * nothing of them is left when the process ends.
 */
export interface Suspects {
  find(mark: string): (Suspect & { judgement: Judgement }) | undefined
  add(suspect: Suspect, judgement: Judgement): void
  judge(mark: string, judgement: Judgement): void
  /** It was met again, on this page. */
  moveTo(mark: string, page: number): void
  /** All that are suspected to be `extra`. */
  judgeExtra(judgement: Judgement): void
  /** The first page behind this one on which somebody still under suspicion stood; null where there is none. */
  nextPage(after: number): number | null
  count(kind: Difference['kind'], judgement: Judgement): number
  /** The first of those that are certain. */
  list(kind: Difference['kind'], most: number): Difference[]
  drop(): void
}

interface Row extends Omit<Suspect, 'paths'> {
  paths: string
  judgement: Judgement
}

export function createSuspects(connection: Connection, number: number): Suspects {
  const table = `temp._suspects_${number}`
  connection.exec(`
    CREATE TABLE ${table} (
      mark TEXT NOT NULL PRIMARY KEY,
      kind TEXT NOT NULL,
      page INTEGER,
      json TEXT,
      paths TEXT NOT NULL,
      reject TEXT,
      judgement TEXT NOT NULL
    ) STRICT;
    CREATE INDEX temp._suspects_by_page_${number} ON _suspects_${number} (judgement, page)
  `)
  const find = connection.prepare(`SELECT * FROM ${table} WHERE mark = ?`)
  const add = connection.prepare(
    `INSERT OR IGNORE INTO ${table} (mark, kind, page, json, paths, reject, judgement) VALUES (?, ?, ?, ?, ?, ?, ?)`,
  )
  const judge = connection.prepare(`UPDATE ${table} SET judgement = ? WHERE mark = ?`)
  const moveTo = connection.prepare(`UPDATE ${table} SET page = ? WHERE mark = ?`)
  const judgeExtra = connection.prepare(
    `UPDATE ${table} SET judgement = ? WHERE kind = 'extra' AND judgement = 'suspected'`,
  )
  const next = connection
    .prepare(`SELECT min(page) FROM ${table} WHERE judgement = 'suspected' AND page > ?`)
    .pluck()
  const count = connection.prepare(`SELECT count(*) FROM ${table} WHERE kind = ? AND judgement = ?`).pluck()
  const list = connection.prepare(
    `SELECT * FROM ${table} WHERE kind = ? AND judgement = 'certain' ORDER BY page, rowid LIMIT ?`,
  )
  return {
    find(mark) {
      const row = find.get(mark) as Row | undefined
      return row && { ...row, paths: JSON.parse(row.paths) as string[] }
    },
    add({ mark, kind, page, json, paths, reject }, judgement) {
      add.run(mark, kind, page, json, JSON.stringify(paths), reject, judgement)
    },
    judge: (mark, judgement) => {
      judge.run(judgement, mark)
    },
    moveTo: (mark, page) => {
      moveTo.run(page, mark)
    },
    judgeExtra: (judgement) => {
      judgeExtra.run(judgement)
    },
    nextPage: (after) => next.get(after) as number | null,
    count: (kind, judgement) => count.get(kind, judgement) as number,
    list: (kind, most) => (list.all(kind, most) as Row[]).map(difference),
    drop: () => {
      connection.exec(`DROP TABLE ${table}`)
    },
  }
}

function difference({ mark, kind, page, paths, reject }: Row): Difference {
  const all = JSON.parse(paths) as string[]
  return {
    kind,
    key: reject === null ? mark : null,
    page,
    paths: all.slice(0, MOST_PATHS),
    hasMorePaths: all.length > MOST_PATHS,
    reject,
  }
}
