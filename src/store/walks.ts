import type { BeginRun, Walk } from '../sync/store.ts'
import type { Checkpoint } from '../sync/types.ts'

// Walks, as both stores hand them to `sync`.

/** A walk that begins, as the statement that makes it returns it. */
export function newWalk(
  row: Pick<Walk, 'id' | 'rowsAddedBefore'>,
  { plan: { kind, firstPage }, first }: Pick<BeginRun, 'plan' | 'first'>,
  at: string,
): Walk {
  const fresh = { resumed: false, rowsSeen: 0, newRejects: 0, untrusted: null, startedAt: Date.parse(at) }
  return { ...row, kind, firstPage, checkpoint: first, ...fresh }
}

/** A walk that goes on, as `resumeSql` returns it. */
export interface WalkRow extends Omit<Walk, 'checkpoint' | 'resumed'>, Pick<Checkpoint, 'nextPage'> {
  pages: number
  passes: number
  account: string
}

/**
 * Loads an open walk; the caller then rebuilds its seen items. A walk without a page starts now: its start becomes the `as_of` of the
 * list, and an earlier run may have been refused long ago. Parameters, and what the job has ever added, as the store writes them.
 */
export function resumeSql(walk: string, at: string, rowsAdded: string): string {
  return `
    UPDATE sync_walks
    SET
      started_at = CASE WHEN pages > 0 THEN started_at ELSE ${at} END,
      updated_at = CASE WHEN pages > 0 THEN updated_at ELSE ${at} END,
      rows_added_before = CASE WHEN pages > 0 THEN rows_added_before ELSE ${rowsAdded} END
    WHERE id = ${walk}
    RETURNING
      id, kind, first_page AS "firstPage", next_page AS "nextPage", passes, pages, rows_seen AS "rowsSeen",
      new_rejects AS "newRejects", untrusted, account, started_at AS "startedAt", rows_added_before AS "rowsAddedBefore"
  `
}

/** @param first The checkpoint of a walk without a page. */
export function resumedWalk({ pages, passes, nextPage, account, ...walk }: WalkRow, first: Checkpoint): Walk {
  const kept = JSON.parse(account) as Omit<Checkpoint, 'pass' | 'nextPage'>
  const resumed = pages > 0
  return { ...walk, resumed, checkpoint: resumed ? { pass: passes, nextPage, ...kept } : first }
}
