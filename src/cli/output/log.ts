import type { Writable } from 'node:stream'
import pino, { type Logger } from 'pino'
import { asCalled, printableJson } from '../../text.ts'
import { HIDDEN_FIELDS, sentence } from './sentence.ts'

export interface LoggerOptions {
  level: string
  destination: Writable
  /** Readable lines for a person, instead of JSON. */
  pretty: boolean
  color: boolean
  /** See `typedConfig`: for the commands in error messages. */
  configOption?: string
}

/**
 * One JSON object per line, or pretty text. Only the name and the message of an error are logged: pino would copy all fields of
 * an unforeseen one, and got's hold the request's headers.
 */
export async function createLogger(given: LoggerOptions): Promise<Logger> {
  const { level, destination, pretty, color, configOption = '' } = given
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: {
      level: (label: string) => ({ level: label }),
      log: (fields: Record<string, unknown>) => withCommands(fields, configOption),
    },
    serializers: { err: describe },
  }
  return pino(options, pretty ? await prettyText(destination, color) : escaping(destination))
}

function withCommands(fields: Record<string, unknown>, configOption: string): Record<string, unknown> {
  const { error_message: message } = fields
  return typeof message === 'string' ? { ...fields, error_message: asCalled(message, configOption) } : fields
}

/** Writes the same JSON, safe for a terminal. */
function escaping(destination: Writable): { write(line: string): void } {
  return { write: (line) => destination.write(printableJson(line)) }
}

/** A stream that writes the JSON lines of a logger as text. */
async function prettyText(destination: Writable, color: boolean): Promise<Writable> {
  // Loading it takes 20 ms, and a service never needs it.
  const { default: pretty } = await import('pino-pretty')
  return pretty({
    destination,
    colorize: color,
    translateTime: 'SYS:HH:MM:ss',
    singleLine: true,
    ignore: HIDDEN_FIELDS.join(','),
    messageFormat: sentence,
  })
}

function describe(error: unknown): object {
  return error instanceof Error ? { type: error.name, message: error.message } : { message: String(error) }
}
