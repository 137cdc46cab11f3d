/**
 * After the end of a run: a job is failing from the end of a run that failed until the end of one that succeeded. One that was
 * interrupted changes nothing. A refresh that succeeds ends no failing of a walk, and one that fails while walks fail adds nothing.
 * `run`: the parameter with the run's id, whose line is finished already. A run whose job another worker has since is "interrupted".
 */
export function failingSql(run: string): string {
  return `
    UPDATE sync_jobs
    SET
      failing_since = ${failed('coalesce(sync_jobs.failing_since, run.finished_at)')},
      failing_by = ${failed("CASE run.trigger WHEN 'refresh' THEN 'refresh' ELSE 'walk' END")},
      failing_code = ${failed('run.error_code')},
      failing_message = ${failed('run.error_message')}
    FROM sync_runs AS run
    WHERE run.id = ${run}
      AND sync_jobs.organization_id = run.organization_id
      AND sync_jobs.collection = run.collection
      AND CASE run.trigger WHEN 'refresh' THEN coalesce(sync_jobs.failing_by, '') <> 'walk' ELSE true END
      AND (run.status = 'failed' OR (run.status = 'succeeded' AND sync_jobs.failing_since IS NOT NULL))
  `
}

function failed(value: string): string {
  return `CASE run.status WHEN 'failed' THEN ${value} END`
}
