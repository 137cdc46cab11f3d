import { type KnownError, MirrorError } from '../errors.ts'
import { type JobOptions, type JobResult, runJob } from './job.ts'

/**
 * Runs jobs concurrently and waits for all of them. The `api` folder bounds the requests in flight: a job that waits
 * for its rate limit costs the others nothing.
 */
export function runJobs(
  jobs: readonly Omit<JobOptions, 'signal'>[],
  signal: AbortSignal,
): Promise<JobResult[]> {
  return runConcurrently(
    jobs.map((job) => (stop) => runJob({ ...job, signal: stop })),
    signal,
  )
}

/** A failed task does not stop the others, unless the mirror itself failed: then all stop. */
export async function runConcurrently<T extends { error: KnownError | null }>(
  tasks: readonly ((signal: AbortSignal) => Promise<T>)[],
  signal: AbortSignal,
): Promise<T[]> {
  const stop = new AbortController()
  const stopWithCaller = () => stop.abort(signal.reason)
  if (signal.aborted) stopWithCaller()
  signal.addEventListener('abort', stopWithCaller)
  const runOne = async (task: (signal: AbortSignal) => Promise<T>) => {
    const result = await task(stop.signal)
    if (result.error instanceof MirrorError) stop.abort(result.error)
    return result
  }
  try {
    return await Promise.all(tasks.map(runOne))
  } finally {
    signal.removeEventListener('abort', stopWithCaller)
  }
}
