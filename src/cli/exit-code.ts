import { CommanderError } from 'commander'
import { ConfigError } from '../config/yaml.ts'
import { ERRORS, InterruptedError, KnownError, UsageError, worstExitCode } from '../errors.ts'
import type { JobResult } from '../sync/job.ts'
import { printable } from '../text.ts'
import type { Runtime } from './runtime.ts'

/** What each exit code means, whatever the command is. */
export const EXIT_CODES: Readonly<Record<number, string>> = {
  0: 'all that was asked for is done',
  1: 'a list failed: server, network, rate limit, an answer that cannot be trusted, or busy elsewhere',
  2: 'usage or configuration error; nothing was sent or written',
  3: 'access refused (400, 401, 403, 404): somebody has to act',
  4: 'the mirror cannot be used: locked, not writable, disk full, damaged, not ours, too new',
  5: 'the mirror and the API are apart: verify found a difference, removals are held back, or a list ended early',
  130: 'stopped by SIGINT (143: SIGTERM, 129: SIGHUP); the next run continues',
}

/** A terminal sends SIGHUP when it closes. */
export const EXIT_OF_SIGNAL = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const

/** The exit code of a command that a signal stopped. */
export function exitCodeOfStop(signal: AbortSignal): number {
  return EXIT_OF_SIGNAL[signal.reason as keyof typeof EXIT_OF_SIGNAL] ?? 143
}

/** The exit code of a command by how its jobs ended. If a signal stopped it, that counts before their errors. */
export function exitCodeOfJobs(results: readonly JobResult[], signal: AbortSignal): number {
  if (signal.aborted) return exitCodeOfStop(signal)
  const errors = results.flatMap(({ error, heldBack }) => [error ?? [], heldBack ?? []].flat())
  return worstExitCode(errors.map(({ code }) => ERRORS[code].exitCode))
}

/** What a report of a defect needs, and no other field of an error: Node would print all, and a network error may hold the token. */
export function internalText(error: unknown): string {
  return `INTERNAL: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`
}

/** Writes why a command failed, and returns its exit code. A signal ends waits early, and goes before the error that comes of that. */
export function reportError(error: unknown, { stderr, signal }: Pick<Runtime, 'stderr' | 'signal'>): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  const isUsage = error instanceof UsageError || error instanceof ConfigError
  if (!isUsage && !(error instanceof KnownError)) {
    stderr.write(internalText(error))
    return 1
  }
  // Names of the configuration and of the mirror may hold anything.
  const lines = error.message.split('\n').map((line) => printable(line, 5000))
  const code = isUsage || error instanceof InterruptedError ? '' : `${error.code}: `
  stderr.write(`${code}${lines.join('\n')}\n`)
  if (isUsage) return 2
  return signal.aborted ? exitCodeOfStop(signal) : ERRORS[error.code].exitCode
}
