import type { Job } from '../../../sync/types.ts'
import type { Connection } from '../file/open.ts'
import { unplanned } from '../sql.ts'

/**
 * What other walks of a job saw while a full walk stood open, interrupted: it did not see that itself, perhaps, and must
 * not take it for gone. There is something to keep only where walks of one job overlap.
 */
export interface SeenSince {
  /** Notes the items of a walk's page for the other walks of its job that stand open. */
  note(job: Job, walkId: number, marks: readonly string[]): void
  hasAny(walkId: number): boolean
  has(walkId: number, mark: string): boolean
}

export function createSeenSince(connection: Connection): SeenSince {
  const others = connection
    .prepare(`
      SELECT id
      FROM sync_walks
      WHERE organization_id = ${unplanned('TEXT')} AND collection = ${unplanned('TEXT')}
        AND status = 'open' AND kind = 'full' AND id <> ?
    `)
    .pluck()
  const add = connection.prepare('INSERT OR IGNORE INTO sync_seen_since (walk_id, mark) VALUES (?, ?)')
  const hasAny = connection.prepare('SELECT 1 FROM sync_seen_since WHERE walk_id = ? LIMIT 1')
  const has = connection.prepare('SELECT 1 FROM sync_seen_since WHERE walk_id = ? AND mark = ?')
  return {
    note({ organization, collection }, walkId, marks) {
      for (const other of others.all(organization.id, collection.name, walkId))
        for (const mark of marks) add.run(other, mark)
    },
    hasAny: (walkId) => hasAny.get(walkId) !== undefined,
    has: (walkId, mark) => has.get(walkId, mark) !== undefined,
  }
}
