/** What the line of a run says whose process was killed: the next run of its job writes it. */
export const DIED = 'the process ended without a word'

/** Whether the run `run` could read no more than a part of its list: a refresh, or a backfill of some pages or with other filters. */
const OF_A_PART = `(run.trigger = 'refresh' OR EXISTS (SELECT 1 FROM sync_walks WHERE id = run.walk_id AND kind = 'partial'))`

/**
 * After the end of a run: a job is failing from the end of a run that failed until the end of one that succeeded. One that was
 * interrupted changes nothing. A part of the list that could be read ends no failing of whole walks, and one that could not adds nothing to it.
 * `run`: the parameter with the run's id, whose line is finished already. A run whose job another worker has since is "interrupted".
 */
export function failingSql(run: string): string {
  return `
    UPDATE sync_jobs
    SET
      failing_since = ${failed('coalesce(sync_jobs.failing_since, run.finished_at)')},
      failing_by = ${failed(`CASE WHEN ${OF_A_PART} THEN 'refresh' ELSE 'walk' END`)},
      failing_code = ${failed('run.error_code')},
      failing_message = ${failed('run.error_message')}
    FROM sync_runs AS run
    WHERE run.id = ${run}
      AND sync_jobs.organization_id = run.organization_id
      AND sync_jobs.collection = run.collection
      AND (coalesce(sync_jobs.failing_by, '') <> 'walk' OR NOT ${OF_A_PART})
      AND (run.status = 'failed' OR (run.status = 'succeeded' AND sync_jobs.failing_since IS NOT NULL))
  `
}

function failed(value: string): string {
  return `CASE run.status WHEN 'failed' THEN ${value} END`
}
