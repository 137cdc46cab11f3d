import type { JobRefresh, SavedRefresh } from '../../../sync/refresh/saved.ts'
import type { RefreshState } from '../../../sync/refresh/state.ts'
import type { Job } from '../../../sync/types.ts'
import type { Connection } from '../sql.ts'
import { nameOf, OF_JOB } from './jobs.ts'

/** What jobs save between refreshes. */
export interface RefreshStore {
  save(job: Job, saved: SavedRefresh): void
  /** Null before the first complete full walk of the job. */
  of(job: Job): { refresh: RefreshState | null; rowsAdded: number; lastPageAt: number }
  all(): JobRefresh[]
}

export function createRefreshStore(connection: Connection): RefreshStore {
  const save = connection.prepare(`
    UPDATE sync_jobs SET refresh = :refresh, fresh_as_of = :freshAsOf, newest = :newest WHERE ${OF_JOB}
  `)
  const find = connection.prepare(`
    SELECT
      refresh,
      rows_added AS rowsAdded,
      (SELECT max(updated_at) FROM sync_walks WHERE ${OF_JOB}) AS lastPageAt
    FROM sync_jobs
    WHERE ${OF_JOB}
  `)
  const all = connection.prepare(`
    SELECT organization_id AS organizationId, collection, refresh
    FROM sync_jobs
    WHERE configured = 1 AND refresh IS NOT NULL
  `)
  return {
    save(job, { state, freshAsOf, newest }) {
      const fresh = { refresh: JSON.stringify(state), freshAsOf: new Date(freshAsOf).toISOString(), newest }
      save.run({ ...nameOf(job), ...fresh })
    },
    of(job) {
      type Stored = { refresh: string | null; rowsAdded: number; lastPageAt: string | null }
      const { refresh, rowsAdded, lastPageAt } = find.get(nameOf(job)) as Stored
      return {
        refresh: stateOf(refresh),
        rowsAdded,
        lastPageAt: lastPageAt === null ? 0 : Date.parse(lastPageAt),
      }
    },
    all() {
      const stored = all.all() as { organizationId: string; collection: string; refresh: string }[]
      return stored.flatMap(({ refresh, ...job }) => {
        const state = stateOf(refresh)
        return state ? [{ ...job, state }] : []
      })
    },
  }
}

/** Null for a text that this program did not write: the next complete full walk writes it again. */
function stateOf(text: string | null): RefreshState | null {
  try {
    const state = JSON.parse(text ?? 'null') as Partial<RefreshState> | null
    const isOurs = typeof state?.scope === 'string' && typeof state.settledAt === 'number'
    return isOurs && state.places && Array.isArray(state.bands) ? (state as RefreshState) : null
  } catch {
    return null
  }
}
