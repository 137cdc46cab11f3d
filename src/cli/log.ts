import type { Writable } from 'node:stream'
import pino, { type Logger } from 'pino'

export interface LoggerOptions {
  level: string
  destination: Writable
  /** For a person: readable lines instead of JSON. */
  pretty: boolean
  color: boolean
}

/**
 * One JSON object a line, or pretty text. Errors are logged by name and message alone: pino would copy every field of an
 * error that slipped through, and got's carry the request's headers.
 */
export async function createLogger({
  level,
  destination,
  pretty: isPretty,
  color,
}: LoggerOptions): Promise<Logger> {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: describe },
  }
  if (!isPretty) return pino(options, destination)
  // Loaded for a terminal alone: it takes 20 ms, and a service never needs it.
  const { prettyText } = await import('./pretty-log.ts')
  return pino(options, prettyText(destination, color))
}

function describe(error: unknown): object {
  return error instanceof Error ? { type: error.name, message: error.message } : { message: String(error) }
}
