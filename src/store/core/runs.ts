import type { BeginRun, Run, RunOutcome, RunRecord, RunTraffic, Walk } from '../../sync/store.ts'
import type { Job } from '../../sync/types.ts'
import { jobKey } from '../../text.ts'
import { BY_PLAN, JOIN_COMPLETE, joinLast, OF_OUTER_JOB } from '../schema.ts'
import { type JobNames, namesOf, OF_JOB } from './jobs.ts'
import { all, msOf, one, only, type Rule, run } from './sql.ts'

// `sync_runs`: one row for each attempt at a job.

/** Opens a run's line, and closes those of runs that died. Returns its id. `walk`: null for a refresh. `within`: the run whose walk pauses for the refresh. */
export function* beginRun(
  job: Job,
  {
    walk,
    trigger,
    brief,
    within,
  }: Pick<BeginRun, 'trigger' | 'brief'> & { walk: Walk | null; within: Run | null },
  at: string,
): Rule<number> {
  yield* run(
    `
      UPDATE sync_runs
      SET status = 'interrupted', finished_at = :at, error_code = 'INTERRUPTED', error_message = 'the process ended without a word', _died = 1
      WHERE ${OF_JOB} AND status = 'running' AND id <> :within
    `,
    { ...namesOf(job), at, within: within?.id ?? 0 },
  )
  const { id } = yield* only<{ id: number }>(
    `
      INSERT INTO sync_runs (walk_id, organization_id, collection, trigger, status, started_at, first_page, _brief)
      VALUES (:walkId, :organization, :collection, :trigger, 'running', :at, :firstPage, :brief)
      RETURNING id
    `,
    {
      ...namesOf(job),
      walkId: walk?.id ?? null,
      trigger,
      at,
      firstPage: walk?.nextPage ?? null,
      // What an earlier run found on its walk counts, too.
      brief: brief && !walk?.resumed ? 1 : 0,
    },
  )
  return id
}

/** The columns of what a run has sent. Also written with each page: a killed run cannot write them later. */
export function trafficValues({ requests, retries, rateLimitHits, rateLimitWaitMs }: RunTraffic) {
  return { requests, retries, rateLimitHits, rateLimitWaitMs: Math.round(rateLimitWaitMs) }
}

export function addRemoved(runId: number, rows: number): Rule<number> {
  return run('UPDATE sync_runs SET rows_removed = rows_removed + :rows WHERE id = :runId', { runId, rows })
}

const RECORD = `
  pages,
  rows_seen AS "rowsSeen",
  rows_added AS "rowsAdded",
  rows_changed AS "rowsChanged",
  rows_removed AS "rowsRemoved"
`

/** Closes a run's line, or deletes it. A line that another process closed when it took the job over stays as it is. */
export function* finishRun({ id, traffic }: Run, outcome: RunOutcome, at: string): Rule<RunRecord> {
  const { status, errorCode, errorMessage } = outcome
  if (status === 'refused') {
    const record = yield* one<RunRecord>(`DELETE FROM sync_runs WHERE id = :id RETURNING ${RECORD}`, { id })
    return record ?? NO_RECORD
  }
  const record = yield* one<RunRecord>(
    `
      UPDATE sync_runs
      SET
        status = CASE WHEN status = 'running' THEN :status::text ELSE status END,
        finished_at = coalesce(finished_at, :at),
        requests = :requests,
        retries = :retries,
        rate_limit_hits = :rateLimitHits,
        rate_limit_wait_ms = :rateLimitWaitMs,
        error_code = coalesce(error_code, :errorCode),
        error_message = coalesce(error_message, :errorMessage)
      WHERE id = :id
      RETURNING ${RECORD}
    `,
    { id, status, at, ...trafficValues(traffic), errorCode, errorMessage },
  )
  yield* run(NOTE_FAILING, { id })
  return record ?? NO_RECORD
}

const NO_RECORD: RunRecord = { pages: 0, rowsSeen: 0, rowsAdded: 0, rowsChanged: 0, rowsRemoved: 0 }

const failed = (value: string) => `CASE run.status WHEN 'failed' THEN ${value} END`

/** Whether the run `run` could read no more than a part of its list: a refresh, or a backfill of some pages or with other filters. */
const OF_A_PART = `(run.trigger = 'refresh' OR EXISTS (SELECT 1 FROM sync_walks WHERE id = run.walk_id AND kind = 'partial'))`

/**
 * After the end of a run: a job is failing from the end of a run that failed until the end of one that succeeded. An interrupted run changes
 * nothing. While whole walks fail, a refresh or partial backfill changes nothing either, whether it succeeds or fails.
 * The run's line is finished already. If another worker has taken the job since, that line says "interrupted".
 */
const NOTE_FAILING = `
  UPDATE sync_jobs
  SET
    failing_since = ${failed('coalesce(sync_jobs.failing_since, run.finished_at)')},
    failing_by = ${failed(`CASE WHEN ${OF_A_PART} THEN 'refresh' ELSE 'walk' END`)},
    failing_code = ${failed('run.error_code')},
    failing_message = ${failed('run.error_message')}
  FROM sync_runs AS run
  WHERE run.id = :id
    AND sync_jobs.organization_id = run.organization_id
    AND sync_jobs.collection = run.collection
    AND (coalesce(sync_jobs.failing_by, '') <> 'walk' OR NOT ${OF_A_PART})
    AND (run.status = 'failed' OR (run.status = 'succeeded' AND sync_jobs.failing_since IS NOT NULL))
`

/** The last runs of the lists that are configured. By id, which the indexes end with: by time, every run of three months would be read. */
const LAST = `
  SELECT
    job.organization_id AS organization, job.collection, complete.started_at AS "completedAt", planned.started_at AS "startedAt",
    EXISTS (SELECT 1 FROM sync_walks WHERE ${OF_OUTER_JOB} AND status = 'open' AND _origin = 'sync') AS unfinished
  FROM sync_jobs AS job
  ${JOIN_COMPLETE}
  ${joinLast('sync_runs', 'planned', BY_PLAN)}
  WHERE job.configured = 1
`

type LastRow = JobNames & Record<'completedAt' | 'startedAt', string | null> & { unfinished: number }

type LastRuns = Record<'completedAt' | 'startedAt', number | null> & { unfinished: boolean }

/** When the lists that are configured last did what their schedules demand, as `isDue` of `schedule` takes it. */
export function* lastRuns(): Rule<(organization: string, collection: string) => LastRuns> {
  const rows = yield* all<LastRow>(LAST)
  const byJob = new Map(
    rows.map(({ organization, collection, completedAt, startedAt, unfinished }) => [
      jobKey(organization, collection),
      { completedAt: msOrNull(completedAt), startedAt: msOrNull(startedAt), unfinished: unfinished === 1 },
    ]),
  )
  const never = { completedAt: null, startedAt: null, unfinished: false }
  return (organization, collection) => byJob.get(jobKey(organization, collection)) ?? never
}

function msOrNull(time: string | null): number | null {
  return time === null ? null : msOf(time)
}
