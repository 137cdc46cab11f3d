import type { Writable } from 'node:stream'
import pino, { type Logger } from 'pino'
import { printable, printableJson } from '../../text.ts'
import type { Globals, Runtime } from '../runtime.ts'
import type { Terminal } from './terminal.ts'

export interface LoggerOptions {
  level: string
  destination: Writable
  /** Readable lines for a person, instead of JSON. */
  pretty: boolean
  color: boolean
}

/** Whether the log is text or JSON, and where it goes. With `--quiet` only errors are written, and no progress. */
export function loggerOptions(
  { logLevel, logFormat, quiet }: Globals,
  { stderr, errors, env }: Runtime,
  terminal: Terminal,
): LoggerOptions {
  const level = quiet && logLevel !== 'silent' && logLevel !== 'fatal' ? 'error' : logLevel
  const isOnTerminal = terminal.isWatched || errors?.isTTY === true
  return {
    level,
    destination: terminal.isWatched ? terminal.log : (errors ?? stderr),
    pretty: logFormat === undefined ? isOnTerminal : logFormat === 'pretty',
    color: isOnTerminal && !env.NO_COLOR && env.TERM !== 'dumb',
  }
}

/**
 * One JSON object per line, or pretty text. Only the name and the message of an error are logged: pino would copy all fields of
 * an unexpected error, and got's errors hold the request's headers.
 */
export async function createLogger({ level, destination, pretty, color }: LoggerOptions): Promise<Logger> {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: loggedError },
  }
  // Data must not move the cursor of a terminal.
  const safe = { write: (line: string) => destination.write(printableJson(line)) }
  return pino(options, pretty ? await prettyText(destination, color) : safe)
}

/** A stream that writes the JSON lines of a logger as text: the list, and the message. */
async function prettyText(destination: Writable, color: boolean): Promise<Writable> {
  // Loading it takes 20 ms, and a service never needs it.
  const { default: pretty } = await import('pino-pretty')
  return pretty({
    destination,
    colorize: color,
    translateTime: 'SYS:HH:MM:ss',
    hideObject: true,
    messageFormat: ({ organization, collection, msg, error_code: code, error_message: why }) => {
      const words = typeof why === 'string' ? [msg, code, why] : [msg]
      const list = typeof collection === 'string' ? `${String(organization)} ${collection} ` : ''
      // Messages of errors begin with the name of the list, since they also stand alone.
      const text = words.map((word) => String(word).replace(list, '')).join(': ')
      return printable(`${list}${text}`, 2000)
    },
  })
}

function loggedError(error: unknown): object {
  return error instanceof Error ? { type: error.name, message: error.message } : { message: String(error) }
}
