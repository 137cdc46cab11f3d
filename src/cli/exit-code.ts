import type { ErrorCode, KnownError } from '../errors.ts'
import type { JobResult } from '../sync/job.ts'

const REFUSED: readonly ErrorCode[] = ['BAD_REQUEST', 'UNAUTHORIZED', 'FORBIDDEN', 'ORGANIZATION_NOT_FOUND']
const APART: readonly ErrorCode[] = ['INCOMPLETE', 'REMOVALS_HELD']

/** What an error alone would make a command exit with. */
export function exitCodeOf(error: KnownError): number {
  if (error.code === 'DATABASE') return 4
  if (REFUSED.includes(error.code)) return 3
  return APART.includes(error.code) ? 5 : 1
}

const EXIT_OF_STOP: Readonly<Record<string, number>> = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 }

/** The exit code of a command that a signal has stopped. */
export function exitCodeOfStop(signal: AbortSignal): number {
  return EXIT_OF_STOP[String(signal.reason)] ?? 143
}

/** The exit code of a command whose jobs ended like this; a signal goes before all of them. */
export function exitCodeOfJobs(results: readonly JobResult[], signal: AbortSignal): number {
  if (signal.aborted) return exitCodeOfStop(signal)
  const codes = results.flatMap(({ error, held }) =>
    [error, held].map((told) => (told ? exitCodeOf(told) : 0)),
  )
  return firstOf(codes)
}

/** The code of a command whose parts alone would make it exit with these. */
export function firstOf(codes: readonly number[]): number {
  return [4, 3, 5, 1].find((code) => codes.includes(code)) ?? 0
}
