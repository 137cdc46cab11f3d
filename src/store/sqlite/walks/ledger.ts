import type { LedgerEntry } from '../../../sync/store.ts'
import type { Connection } from '../sql.ts'

/** `sync_pages`, the page ledger. */
export interface Ledger {
  add(walkId: number, entry: LedgerEntry, at: string): void
  /** Up to 500 answers after this one, in order. */
  read(walkId: number, after: number): LedgerEntry[]
}

interface LedgerRow extends Omit<LedgerEntry, 'ids' | 'positions'> {
  /** JSON list of the ids. */
  keys: string
  /** JSON list beside the keys: `[ordinal, position]` of each item that was found, null for the others. */
  places: string | null
}

type FoundAt = [segment: number, position: number] | null

/** Answers that one call reads. */
const BATCH = 500

export function createLedger(connection: Connection): Ledger {
  const insert = connection.prepare(`
    INSERT INTO sync_pages (walk_id, ordinal, pass, page, total, keys, read_at, why, places)
    VALUES (:walkId, :ordinal, :pass, :page, :total, :keys, :at, :why, :places)
  `)
  const select = connection.prepare(`
    SELECT ordinal, pass, page, total, keys, why, places
    FROM sync_pages
    WHERE walk_id = ? AND ordinal > ?
    ORDER BY ordinal
    LIMIT ${BATCH}
  `)
  return {
    add(walkId, { ids, positions, ...answer }, at) {
      const found = positions?.map((position): FoundAt => position && [position.segment, position.position])
      const places = found ? JSON.stringify(found) : null
      insert.run({ ...answer, keys: JSON.stringify(ids), places, walkId, at })
    },
    read: (walkId, after) => (select.all(walkId, after) as LedgerRow[]).map(toEntry),
  }
}

function toEntry({ keys, places, ...answer }: LedgerRow): LedgerEntry {
  const found = places === null ? null : (JSON.parse(places) as FoundAt[])
  const positions = found?.map((at) => at && { segment: at[0], position: at[1] }) ?? null
  return { ...answer, ids: JSON.parse(keys) as string[], positions }
}
