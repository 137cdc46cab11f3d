import type { LedgerEntry } from '../../../sync/store.ts'
import type { Server } from '../server/server.ts'

interface LedgerRow extends Omit<LedgerEntry, 'ids' | 'positions'> {
  /** JSON list of the ids. */
  keys: string
  /** JSON list beside the keys: `[ordinal, position]` of each item that was found, null for the others. */
  places: string | null
}

type FoundAt = [segment: number, position: number] | null

/** Answers that one call reads. */
const BATCH = 500

/** Up to 500 answers of a walk after this one, in order. */
export async function readLedger(
  server: Pick<Server, 'rows'>,
  walkId: number,
  after: number,
): Promise<LedgerEntry[]> {
  const rows = await server.rows<LedgerRow>(
    `
      SELECT ordinal, pass, page, total, keys, why, places
      FROM sync_pages
      WHERE walk_id = $1 AND ordinal > $2
      ORDER BY ordinal
      LIMIT ${BATCH}
    `,
    [walkId, after],
  )
  return rows.map(toEntry)
}

function toEntry({ keys, places, ...answer }: LedgerRow): LedgerEntry {
  const found = places === null ? null : (JSON.parse(places) as FoundAt[])
  const positions = found?.map((at) => at && { segment: at[0], position: at[1] }) ?? null
  return { ...answer, ids: JSON.parse(keys) as string[], positions }
}
