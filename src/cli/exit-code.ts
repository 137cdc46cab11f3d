import { CommanderError } from 'commander'
import { ConfigError } from '../config/problems.ts'
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

/** The exit code of a command by how its jobs ended. If a signal stopped it, that counts before their errors. */
export function exitCodeOfJobs(results: readonly JobResult[], signal: AbortSignal): number {
  if (signal.aborted) return exitCodeOfStop(signal)
  return worstExitCode(
    results.flatMap(({ error, heldBack }) =>
      [error, heldBack].map((one) => (one ? ERRORS[one.code].exitCode : 0)),
    ),
  )
}

/** Writes why a command failed, and returns its exit code. A signal ends waits early, and goes before the error that comes of that. */
export function reportError(error: unknown, { stderr, signal }: Pick<Runtime, 'stderr' | 'signal'>): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  if (error instanceof UsageError || error instanceof ConfigError) {
    stderr.write(`${safe(error.message)}\n`)
    return 2
  }
  if (error instanceof KnownError) {
    const code = error instanceof InterruptedError ? '' : `${error.code}: `
    stderr.write(`${code}${safe(error.message)}\n`)
    return signal.aborted ? exitCodeOfStop(signal) : ERRORS[error.code].exitCode
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
