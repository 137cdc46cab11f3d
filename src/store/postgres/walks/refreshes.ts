import type { JobRefresh, SavedRefresh } from '../../../sync/refresh/saved.ts'
import type { RefreshState } from '../../../sync/refresh/state.ts'
import type { Lease } from '../../../sync/store.ts'
import type { Job } from '../../../sync/types.ts'
import type { Sql } from '../sql.ts'
import { OF_JOB, ofJob, timeOf } from './job.ts'

// What jobs save between refreshes.

export async function saveRefresh(sql: Sql, job: Job, saved: SavedRefresh): Promise<void> {
  const { refresh, freshAsOf, newest } = savedColumns(saved)
  await sql.rows(`UPDATE sync_jobs SET refresh = $3, fresh_as_of = $4, newest = $5 WHERE ${OF_JOB}`, [
    ...ofJob(job),
    refresh,
    freshAsOf,
    newest,
  ])
}

/** The columns of `sync_jobs`; all null: they stay as they are. */
export function savedColumns(saved: SavedRefresh | null) {
  return {
    refresh: saved && JSON.stringify(saved.state),
    freshAsOf: saved && timeOf(saved.freshAsOf),
    newest: saved?.newest ?? null,
  }
}

export async function refreshOf(
  sql: Pick<Sql, 'rows'>,
  job: Job,
): Promise<Pick<Lease, 'refresh' | 'rowsAdded' | 'lastPageAt'>> {
  const [row] = await sql.rows<{ refresh: string | null; rowsAdded: number; lastPageAt: number | null }>(
    `
      SELECT
        refresh,
        rows_added AS "rowsAdded",
        (SELECT max(updated_at) FROM sync_walks WHERE ${OF_JOB}) AS "lastPageAt"
      FROM sync_jobs
      WHERE ${OF_JOB}
    `,
    ofJob(job),
  )
  return {
    refresh: stateOf(row?.refresh ?? null),
    rowsAdded: row?.rowsAdded ?? 0,
    lastPageAt: row?.lastPageAt ?? 0,
  }
}

export async function allRefreshes(sql: Pick<Sql, 'rows'>): Promise<JobRefresh[]> {
  const rows = await sql.rows<{ organizationId: string; collection: string; refresh: string }>(`
    SELECT organization_id AS "organizationId", collection, refresh
    FROM sync_jobs
    WHERE configured = 1 AND refresh IS NOT NULL
  `)
  return rows.flatMap(({ refresh, ...job }) => {
    const state = stateOf(refresh)
    return state ? [{ ...job, state }] : []
  })
}

function stateOf(text: string | null): RefreshState | null {
  return text === null ? null : (JSON.parse(text) as RefreshState)
}
