import type { Run, RunOutcome, RunRecord, RunTraffic, Walk } from '../../../sync/store.ts'
import type { Job, Trigger } from '../../../sync/types.ts'
import type { Connection } from '../sql.ts'

/** `sync_runs`: one line for each attempt at a job. */
export interface RunStore {
  begin(job: Job, walk: Walk, trigger: Trigger, at: string): number
  addPage(run: Run, items: number, rows: { added: number; changed: number }): void
  addRemoved(runId: number, rows: number): void
  finish(run: Run, outcome: RunOutcome, at: string): RunRecord
}

export function createRunStore(connection: Connection): RunStore {
  const closeDead = connection.prepare(`
    UPDATE sync_runs
    SET status = 'interrupted', finished_at = ?, error_code = 'INTERRUPTED', error_message = 'the process ended without a word'
    WHERE organization_id = ? AND collection = ? AND status = 'running'
  `)
  const insertRun = connection.prepare(`
    INSERT INTO sync_runs (walk_id, organization_id, collection, trigger, status, started_at, first_page)
    VALUES (?, ?, ?, ?, 'running', ?, ?)
  `)
  const deleteRun = connection.prepare('DELETE FROM sync_runs WHERE id = ?')
  const addPage = connection.prepare(`
    UPDATE sync_runs
    SET
      pages = pages + 1,
      rows_seen = rows_seen + ?,
      rows_added = rows_added + ?,
      rows_changed = rows_changed + ?,
      requests = ?,
      retries = ?,
      rate_limit_hits = ?,
      rate_limit_wait_ms = ?
    WHERE id = ?
  `)
  const addRemoved = connection.prepare('UPDATE sync_runs SET rows_removed = rows_removed + ? WHERE id = ?')
  const finishRun = connection.prepare(`
    UPDATE sync_runs
    SET
      status = ?,
      finished_at = ?,
      requests = ?,
      retries = ?,
      rate_limit_hits = ?,
      rate_limit_wait_ms = ?,
      error_code = ?,
      error_message = ?
    WHERE id = ?
    RETURNING
      pages,
      rows_seen AS rowsSeen,
      rows_added AS rowsAdded,
      rows_changed AS rowsChanged,
      rows_removed AS rowsRemoved
  `)
  return {
    begin(job, walk, trigger, at) {
      const { organization, collection } = job
      closeDead.run(at, organization.id, collection.name)
      const firstPage = walk.checkpoint.nextPage
      return Number(
        insertRun.run(walk.id, organization.id, collection.name, trigger, at, firstPage).lastInsertRowid,
      )
    },
    addPage: ({ id, traffic }, items, { added, changed }) => {
      addPage.run(items, added, changed, ...numbers(traffic), id)
    },
    addRemoved: (runId, rows) => {
      addRemoved.run(rows, runId)
    },
    finish({ id, traffic }, { status, errorCode, errorMessage }, at) {
      const record = finishRun.get(status, at, ...numbers(traffic), errorCode, errorMessage, id) as RunRecord
      if (status === 'refused') deleteRun.run(id)
      return record
    },
  }
}

/** Written with each page, too: of a run that was killed they are all there is. */
function numbers({ requests, retries, rateLimitHits, rateLimitWaitMs }: RunTraffic): number[] {
  return [requests, retries, rateLimitHits, Math.round(rateLimitWaitMs)]
}
