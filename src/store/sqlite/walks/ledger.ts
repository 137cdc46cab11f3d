import type { LedgerEntry } from '../../../sync/store.ts'

/** A line of `sync_pages`. */
export interface LedgerRow extends Omit<LedgerEntry, 'ids' | 'positions'> {
  /** JSON list of the ids. */
  keys: string
  /** JSON list beside the keys: `[ordinal, position]` of each that was found, null for the others. */
  places: string | null
}

type FoundAt = [segment: number, position: number] | null

export function ledgerRow({ ids, positions, ...answer }: LedgerEntry): LedgerRow {
  const found = positions?.map((at): FoundAt => at && [at.segment, at.position])
  return { ...answer, keys: JSON.stringify(ids), places: found ? JSON.stringify(found) : null }
}

export function ledgerEntry({ keys, places, ...answer }: LedgerRow): LedgerEntry {
  const found = places === null ? null : (JSON.parse(places) as FoundAt[])
  const positions = found?.map((at) => at && { segment: at[0], position: at[1] }) ?? null
  return { ...answer, ids: JSON.parse(keys) as string[], positions }
}
