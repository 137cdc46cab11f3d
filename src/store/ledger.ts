import type { LedgerEntry } from '../sync/store.ts'

/** An answer as `sync_pages`, the page ledger, keeps it. */
export interface LedgerRow extends Omit<LedgerEntry, 'ids' | 'positions'> {
  /** JSON list of the ids. */
  keys: string
  /** JSON list beside the keys: `[ordinal, position]` of each item that was found, null for the others. */
  places: string | null
}

type FoundAt = [segment: number, position: number] | null

/** The SELECT of up to 500 answers after one of the walk, in order. Its parameters, as the store writes them. */
export function selectAnswers(walk: string, after: string): string {
  return `
    SELECT ordinal, pass, page, total, keys, why, places
    FROM sync_pages
    WHERE walk_id = ${walk} AND ordinal > ${after}
    ORDER BY ordinal
    LIMIT 500
  `
}

export function rowOf({ ids, positions, ...answer }: LedgerEntry): LedgerRow {
  const found = positions?.map((position): FoundAt => position && [position.segment, position.position])
  return { ...answer, keys: JSON.stringify(ids), places: found ? JSON.stringify(found) : null }
}

export function entryOf({ keys, places, ...answer }: LedgerRow): LedgerEntry {
  const found = places === null ? null : (JSON.parse(places) as FoundAt[])
  const positions = found?.map((at) => at && { segment: at[0], position: at[1] }) ?? null
  return { ...answer, ids: JSON.parse(keys) as string[], positions }
}
