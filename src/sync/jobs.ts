import { type KnownError, MirrorError } from '../errors.ts'
import { type JobOptions, type JobResult, runJob } from './job.ts'

/**
 * Runs jobs side by side and waits for all of them. How many requests are in flight at once is the API room's to say:
 * a job that waits for its rate limit costs the others nothing.
 */
export function runJobs(
  jobs: readonly Omit<JobOptions, 'signal'>[],
  signal: AbortSignal,
): Promise<JobResult[]> {
  return sideBySide(
    jobs.map((job) => (stop) => runJob({ ...job, signal: stop })),
    signal,
  )
}

/** One task that fails never stops another, unless it is the mirror that failed: then none can go on, and all of them stop. */
export async function sideBySide<T extends { error: KnownError | null }>(
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
