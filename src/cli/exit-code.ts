import { type ErrorCode, type KnownError, REFUSALS } from '../errors.ts'
import type { JobResult } from '../sync/job.ts'

const APART: readonly ErrorCode[] = ['INCOMPLETE', 'REMOVALS_HELD']

/** The exit code of a command that meets only this error. */
export function exitCodeOf(error: KnownError): number {
  if (error.code === 'DATABASE') return 4
  if (REFUSALS.includes(error.code)) return 3
  return APART.includes(error.code) ? 5 : 1
}

const EXIT_OF_STOP: Readonly<Record<string, number>> = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 }

/** The exit code of a command that a signal stopped. */
export function exitCodeOfStop(signal: AbortSignal): number {
  return EXIT_OF_STOP[String(signal.reason)] ?? 143
}

/** The exit code of a command whose jobs ended like this. A signal goes before their errors. */
export function exitCodeOfJobs(results: readonly JobResult[], signal: AbortSignal): number {
  if (signal.aborted) return exitCodeOfStop(signal)
  return firstOf(
    results.flatMap(({ error, heldBack }) => [error, heldBack].map((one) => (one ? exitCodeOf(one) : 0))),
  )
}

/** The exit code of a command whose parts have these. */
export function firstOf(codes: readonly number[]): number {
  return [4, 3, 5, 1].find((code) => codes.includes(code)) ?? 0
}
