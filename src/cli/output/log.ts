import { Writable } from 'node:stream'
import { createLogUpdate } from 'log-update'
import pino, { type Logger } from 'pino'
import { printable, printableJson } from '../../text.ts'
import type { Invocation, Output } from '../runtime.ts'

// Standard error: JSON lines, or on a terminal text and below it lines that are drawn again and again.

/** Where a command writes what it does. */
export interface Log {
  logger: Logger
  /** Replaces the drawn lines by these; null where nothing can be drawn. */
  draw: ((lines: readonly string[]) => void) | null
}

/**
 * Only the name and the message of an error are logged: pino would copy all fields of an unexpected error, and got's errors hold the
 * request's headers.
 */
export async function openLog({ errors: output, env, globals }: Invocation): Promise<Log> {
  const { logLevel, logFormat, quiet } = globals
  const isTerminal = output.isTTY === true
  const knowsEscapes = isTerminal && env.TERM !== 'dumb'
  const drawing = knowsEscapes && !quiet ? createDrawing(output) : null
  const destination = drawing?.above ?? output
  const isPretty = logFormat === undefined ? isTerminal : logFormat === 'pretty'
  const options = {
    level: quiet ? 'error' : logLevel,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: {
      err: (error: unknown) =>
        error instanceof Error ? { type: error.name, message: error.message } : { message: String(error) },
    },
  }
  const stream = isPretty
    ? await prettyText(destination, knowsEscapes && !env.NO_COLOR)
    : // Data must not move the cursor of a terminal.
      { write: (line: string) => destination.write(printableJson(line)) }
  return { logger: pino(options, stream), draw: drawing?.draw ?? null }
}

/** Lines at the end of a terminal. `above`: a stream for what is written before them. */
function createDrawing(output: Output) {
  const stream = {
    write: (text: string) => output.write(text),
    isTTY: true,
    // A terminal that does not know its size reports 0.
    get columns() {
      return output.columns || 80
    },
    get rows() {
      return output.rows || 24
    },
  }
  // A hidden cursor would stay hidden where the process is killed.
  const update = createLogUpdate(stream as NodeJS.WriteStream, { showCursor: true })
  let drawn = ''
  const show = () => (drawn === '' ? update.clear() : update(drawn))
  return {
    above: new Writable({
      write(chunk, _encoding, done) {
        update.clear()
        output.write(chunk)
        show()
        done()
      },
    }),
    draw(lines: readonly string[]): void {
      const fitting = lines.slice(0, Math.max(Math.floor(stream.rows / 2), 1))
      drawn = fitting.map((line) => line.slice(0, stream.columns - 1)).join('\n')
      show()
    },
  }
}

/** A stream that writes the JSON lines of a logger as text: the list, the message and the error. */
async function prettyText(destination: Writable, colorize: boolean): Promise<Writable> {
  // Loading it takes 20 ms, and a service never needs it.
  const { default: pretty } = await import('pino-pretty')
  return pretty({
    destination,
    colorize,
    translateTime: 'SYS:HH:MM:ss',
    hideObject: true,
    messageFormat: ({ organization, collection, msg, error_code: code, error_message: why }) => {
      const list = typeof collection === 'string' ? `${String(organization)} ${collection} ` : ''
      // Messages of errors begin with the name of the list, since they also stand alone.
      const bare = (text: string) => (text.startsWith(list) ? text.slice(list.length) : text)
      const error = typeof why === 'string' ? `: ${String(code)}: ${bare(why)}` : ''
      return printable(`${list}${bare(String(msg))}${error}`, 2000)
    },
  })
}
