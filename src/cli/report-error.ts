import { CommanderError } from 'commander'
import { KnownError, UsageError } from '../errors.ts'
import { asCalled, printable } from '../text.ts'
import { exitCodeOf } from './exit-code.ts'
import type { Runtime } from './runtime.ts'

/** Writes why a command failed, and returns its exit code. `configOption`: see `typedConfig`. */
export function reportError(error: unknown, { stderr }: Runtime, configOption: string): number {
  const shown = (message: string) => safe(asCalled(message, configOption))
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  if (error instanceof UsageError || (error instanceof Error && error.name === 'ConfigError')) {
    stderr.write(`${shown(error.message)}\n`)
    return 2
  }
  if (error instanceof KnownError) {
    stderr.write(`${error.code}: ${shown(error.message)}\n`)
    return exitCodeOf(error)
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
