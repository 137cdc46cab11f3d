import { CommanderError } from 'commander'
import { ERRORS, InterruptedError, KnownError, UsageError, worstExitCode } from '../errors.ts'
import type { JobResult } from '../sync/job.ts'
import { printable } from '../text.ts'
import type { Runtime } from './runtime.ts'

/** A terminal sends SIGHUP when it closes. */
export const EXIT_OF_SIGNAL = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const

/** The exit code of a command that a signal stopped. */
export function exitCodeOfStop(signal: AbortSignal): number {
  return EXIT_OF_SIGNAL[signal.reason as keyof typeof EXIT_OF_SIGNAL] ?? 143
}

/** The exit code of `start` after a signal: a service that restarts on failure comes back after a SIGHUP, with the new configuration. */
export function exitCodeOfStoppedStart({ reason }: AbortSignal): number {
  return reason === 'SIGHUP' ? EXIT_OF_SIGNAL.SIGHUP : 0
}

/** Tells the user that a signal stopped the command, and returns its exit code. Throws any other error. */
export function exitCodeIfStopped(
  error: unknown,
  { signal, stderr }: Pick<Runtime, 'signal' | 'stderr'>,
  text?: string,
): number {
  if (!(error instanceof InterruptedError) || !signal.aborted) throw error
  stderr.write(`${text ?? error.message}\n`)
  return exitCodeOfStop(signal)
}

/** The exit code of a command by how its jobs ended. If a signal stopped it, that counts before their errors. */
export function exitCodeOfJobs(results: readonly JobResult[], signal: AbortSignal): number {
  if (signal.aborted) return exitCodeOfStop(signal)
  return worstExitCode(
    results.flatMap(({ error, heldBack }) =>
      [error, heldBack].map((one) => (one ? ERRORS[one.code].exitCode : 0)),
    ),
  )
}

/** Writes why a command failed, and returns its exit code. */
export function reportError(error: unknown, { stderr }: Runtime): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  if (error instanceof UsageError || (error instanceof Error && error.name === 'ConfigError')) {
    stderr.write(`${safe(error.message)}\n`)
    return 2
  }
  if (error instanceof KnownError) {
    stderr.write(`${error.code}: ${safe(error.message)}\n`)
    return ERRORS[error.code].exitCode
  }
  stderr.write(`INTERNAL: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
  return 1
}

/** Names of the configuration and of the mirror may hold anything. */
function safe(message: string): string {
  return message
    .split('\n')
    .map((line) => printable(line, 5000))
    .join('\n')
}
