import { sortedJson } from '../../../json/value.ts'
import type { HeldRemovals, PageRetry } from '../../../sync/store.ts'
import type { Job } from '../../../sync/types.ts'
import type { Connection } from '../sql.ts'

/** A job's row of `sync_jobs`, for removals. */
export interface JobState {
  /** Live rows. */
  rows: number
  held: number
  /** Whether the configuration names another list than the last trusted walk read. */
  isOtherScope: boolean
  /** Whether pages of another list were written since then. */
  isMixed: boolean
}

/** `sync_jobs`. Scope: the list that a job reads, by its path and the configured filters. */
export interface JobStore {
  state(job: Job): JobState
  addRows(job: Job, rows: number): void
  heldBack(job: Job): HeldRemovals | null
  /** After a trusted walk: each live row is listed in this scope, or known to be missing. */
  confirm(job: Job, isOverlapped: boolean): void
  noteRetry(job: Job, retry: PageRetry | null): void
}

/** The condition for the rows of a job, with the parameters of `nameOf`. */
export const OF_JOB = 'organization_id = :organization AND collection = :collection'

export function createJobStore(connection: Connection): JobStore {
  const findState = connection.prepare(`
    SELECT
      rows,
      removals_held AS held,
      scope_path IS NOT :path OR scope_filters IS NOT :filters AS isOtherScope,
      scope_mixed AS isMixed
    FROM sync_jobs
    WHERE ${OF_JOB}
  `)
  const update = (change: string) => connection.prepare(`UPDATE sync_jobs SET ${change} WHERE ${OF_JOB}`)
  const addRows = update('rows = rows + :rows')
  const findHeld = connection.prepare(`
    SELECT removals_held AS rows, rows AS live, held_why AS why FROM sync_jobs WHERE ${OF_JOB} AND removals_held > 0
  `)
  // Pages of another list that were written during the walk are as new as the walk.
  const confirm = update(`
    scope_path = :path,
    scope_filters = :filters,
    scope_mixed = scope_mixed AND :isOverlapped
  `)
  const noteRetry = update('retry_since = :since, retry_until = :until, retry_error = :error')
  return {
    state(job) {
      const row = findState.get({ ...nameOf(job), ...scopeOf(job) }) as Record<keyof JobState, number>
      return { ...row, isOtherScope: row.isOtherScope === 1, isMixed: row.isMixed === 1 }
    },
    addRows: (job, rows) => {
      if (rows !== 0) addRows.run({ ...nameOf(job), rows })
    },
    heldBack: (job) => (findHeld.get(nameOf(job)) as HeldRemovals | undefined) ?? null,
    confirm: (job, isOverlapped) => {
      confirm.run({ ...nameOf(job), ...scopeOf(job), isOverlapped: isOverlapped ? 1 : 0 })
    },
    noteRetry: (job, retry) => {
      const [since, until] = retry ? [retry.since, retry.until].map((at) => new Date(at).toISOString()) : []
      noteRetry.run({
        ...nameOf(job),
        since: since ?? null,
        until: until ?? null,
        error: retry?.error ?? null,
      })
    },
  }
}

export function nameOf({ organization, collection }: Pick<Job, 'organization' | 'collection'>): {
  organization: string
  collection: string
} {
  return { organization: organization.id, collection: collection.name }
}

/** By the configured filters: those of a backfill only narrow the list. */
export function scopeOf({ collection }: Job): { path: string; filters: string } {
  return { path: collection.path, filters: sortedJson(collection.scope ?? collection.filters) }
}
