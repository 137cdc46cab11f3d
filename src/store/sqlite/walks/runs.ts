import type { BeginRun, Run, RunOutcome, RunRecord, Walk } from '../../../sync/store.ts'
import type { Job } from '../../../sync/types.ts'
import { DIED, failingSql } from '../../failing.ts'
import { LAST_RUNS, type LastRuns, NEVER_RUN } from '../../tokens.ts'
import { translatingErrors } from '../file/open.ts'
import type { Connection } from '../sql.ts'
import { trafficNumbers } from './commit.ts'

/** `sync_runs`: one row for each attempt at a job. */
export interface RunStore {
  begin(job: Job, walk: Walk, { trigger, brief }: Pick<BeginRun, 'trigger' | 'brief'>, at: string): number
  /** `within`: the run whose walk gives way; null: none does. */
  beginRefresh(job: Job, within: Run | null, at: string): number
  addRemoved(runId: number, rows: number): void
  finish(run: Run, outcome: RunOutcome, at: string): RunRecord
}

export function createRunStore(connection: Connection): RunStore {
  const closeDead = connection.prepare(`
    UPDATE sync_runs
    SET status = 'interrupted', finished_at = ?, error_code = 'INTERRUPTED', error_message = '${DIED}'
    WHERE organization_id = ? AND collection = ? AND status = 'running' AND id <> ?
  `)
  const insertRun = connection.prepare(`
    INSERT INTO sync_runs (walk_id, organization_id, collection, trigger, status, started_at, first_page, brief)
    VALUES (?, ?, ?, ?, 'running', ?, ?, ?)
  `)
  const deleteRun = connection.prepare('DELETE FROM sync_runs WHERE id = ?')
  const addRemoved = connection.prepare(
    'UPDATE sync_runs SET rows_removed = rows_removed + :rows, brief = iif(:rows > 0, 0, brief) WHERE id = :runId',
  )
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
      error_message = ?,
      brief = iif(? = 'succeeded', brief, 0)
    WHERE id = ?
    RETURNING
      pages,
      rows_seen AS rowsSeen,
      rows_added AS rowsAdded,
      rows_changed AS rowsChanged,
      rows_removed AS rowsRemoved
  `)
  const noteFailing = connection.prepare(failingSql('?'))
  function insert({ organization, collection }: Job, run: Opening, at: string): number {
    const { trigger, walk, brief } = run
    const firstPage = walk?.checkpoint.nextPage ?? null
    const line = [walk?.id ?? null, organization.id, collection.name, trigger, at, firstPage, brief ? 1 : 0]
    return Number(insertRun.run(...line).lastInsertRowid)
  }

  return {
    begin(job, walk, begin, at) {
      closeDead.run(at, job.organization.id, job.collection.name, NO_RUN)
      return insert(job, { ...begin, walk }, at)
    },
    beginRefresh(job, within, at) {
      closeDead.run(at, job.organization.id, job.collection.name, within?.id ?? NO_RUN)
      return insert(job, { trigger: 'refresh', walk: null, brief: true }, at)
    },
    addRemoved: (runId, rows) => {
      addRemoved.run({ rows, runId })
    },
    finish({ id, traffic }, { status, errorCode, errorMessage }, at) {
      const record = finishRun.get(
        status,
        at,
        ...trafficNumbers(traffic),
        errorCode,
        errorMessage,
        status,
        id,
      ) as RunRecord
      if (status === 'refused') deleteRun.run(id)
      else noteFailing.run(id)
      return record
    },
  }
}

interface Opening extends Pick<BeginRun, 'trigger' | 'brief'> {
  walk: Walk | null
}

/** The id of no run. */
const NO_RUN = 0

export function createLastRuns(
  connection: Connection,
): (organizationId: string, collection: string) => LastRuns {
  const find = connection.prepare(
    `SELECT ${LAST_RUNS} FROM sync_jobs AS job WHERE organization_id = ? AND collection = ?`,
  )
  type Row = Record<'completedAt' | 'startedAt', string | null> & { unfinished: number }
  return (organizationId, collection) => {
    const row = translatingErrors(
      connection.name,
      () => find.get(organizationId, collection) as Row | undefined,
    )
    if (!row) return NEVER_RUN
    const { completedAt, startedAt, unfinished } = row
    return {
      completedAt: completedAt === null ? null : Date.parse(completedAt),
      startedAt: startedAt === null ? null : Date.parse(startedAt),
      unfinished: unfinished === 1,
    }
  }
}
