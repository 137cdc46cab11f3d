import type { Writable } from 'node:stream'
import pino, { type Logger } from 'pino'
import pretty from 'pino-pretty'
import { sentence, TOLD_FIELDS } from './sentence.ts'

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
export function createLogger({ level, destination, pretty: isPretty, color }: LoggerOptions): Logger {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: describe },
  }
  if (!isPretty) return pino(options, destination)
  return pino(
    options,
    pretty({
      destination,
      colorize: color,
      translateTime: 'SYS:HH:MM:ss',
      singleLine: true,
      ignore: TOLD_FIELDS.join(','),
      messageFormat: sentence,
    }),
  )
}

function describe(error: unknown): object {
  return error instanceof Error ? { type: error.name, message: error.message } : { message: String(error) }
}
