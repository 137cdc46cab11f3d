import type { Writable } from 'node:stream'
import pino, { type LogFn, type Logger } from 'pino'
import { asCalled, counted, grouped, inWords, printable, printableJson } from '../../text.ts'
import { type Globals, type Runtime, typedConfig } from '../runtime.ts'
import { RUN_NUMBER_NAMES } from './results.ts'
import type { Terminal } from './terminal.ts'

export interface LoggerOptions {
  level: string
  destination: Writable
  /** Readable lines for a person, instead of JSON. */
  pretty: boolean
  color: boolean
  /** See `typedConfig`: for the commands in error messages. */
  configOption?: string
}

/** Whether the log is text or JSON, and where it goes. With `--quiet` only errors are written, and no progress. */
export function loggerOptions(
  globals: Globals,
  { stderr, errors, env }: Runtime,
  terminal: Terminal,
): LoggerOptions {
  const { logLevel, logFormat, quiet } = globals
  const level = quiet && logLevel !== 'silent' && logLevel !== 'fatal' ? 'error' : logLevel
  const isOnTerminal = terminal.isWatched || errors?.isTTY === true
  const pretty = logFormat === undefined ? isOnTerminal : logFormat === 'pretty'
  const destination = terminal.isWatched ? terminal.log : (errors ?? stderr)
  return {
    level,
    destination,
    pretty,
    color: isOnTerminal && !env.NO_COLOR && env.TERM !== 'dumb',
    configOption: typedConfig(globals),
  }
}

/**
 * One JSON object per line, or pretty text. Only the name and the message of an error are logged: pino would copy all fields of
 * an unexpected error, and got's errors hold the request's headers.
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
    serializers: { err: loggedError },
    hooks: {
      logMethod(this: Logger, [fields, message]: Parameters<LogFn>, method: LogFn) {
        method.call(this, fields, message && asCalled(message, configOption))
      },
    },
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
    ignore: HIDDEN_FIELDS.join(),
    messageFormat: sentence,
  })
}

function loggedError(error: unknown): object {
  return error instanceof Error ? { type: error.name, message: error.message } : { message: String(error) }
}

/** A line of the log with its fields. */
type LogFields = Record<string, unknown>

/** Fields that the text of a line contains already, or that a terminal does not need. */
const HIDDEN_FIELDS = [
  ...RUN_NUMBER_NAMES,
  'event',
  'run_id',
  'duration_ms',
  'lists',
  'failed',
  'busy',
  'owner',
  'stopped',
  'delay_ms',
  'allowed_per_minute',
  'organization',
  'collection',
  'trigger',
  'status',
  'walk_id',
  'first_page',
  'page',
  'items',
  'coverage',
  'error_code',
  'error_message',
]

/** A line of the log as text: the job, the message, and the numbers that matter. */
export function sentence(line: LogFields, messageKey: string): string {
  const message = joined(line[messageKey])
  const list = joined(line.organization, line.collection)
  // Messages of errors name the list themselves.
  const text = message.startsWith(`${list} `) ? message : joined(line.organization, line.collection, message)
  return printable([text, ...outcomeParts(line, message)].join(', '), LONGEST_MESSAGE)
}

function joined(...words: unknown[]): string {
  return words.filter((word) => typeof word === 'string').join(' ')
}

/** Messages are cut and cleaned where they are made. This catches one that was not. */
const LONGEST_MESSAGE = 2000

function outcomeParts(line: LogFields, message: string): string[] {
  const { status } = line
  const isEnd = typeof status === 'string' || line.event === 'refresh_finished'
  const outcome = [...(status === 'succeeded' ? [status] : []), ...(isEnd ? numbers(line) : [])]
  const isTold = message.includes(String(line.error_message))
  const failure =
    typeof line.error_code === 'string' && !isTold
      ? [`${line.error_code}: ${String(line.error_message)}`]
      : []
  return [...outcome, ...failure]
}

function numbers(line: LogFields): string[] {
  const number = (name: string) => Number(line[name] ?? 0)
  const waitMs = number('rate_limit_wait_ms')
  const removed = number('rows_removed') > 0 ? `, ${grouped(number('rows_removed'))} removed` : ''
  const changes = `${grouped(number('rows_added'))} new, ${grouped(number('rows_changed'))} changed${removed}`
  return [
    counted(number('pages'), 'page'),
    // `rows_seen` counts a page twice that was asked for again; for a refresh there is no other number.
    line.items === undefined ? changes : `${counted(number('items'), 'row')} (${changes})`,
    ...(typeof line.coverage === 'string' ? [line.coverage] : []),
    ...(waitMs >= 1000 ? [`${inWords(waitMs)} at the rate limit`] : []),
  ]
}
