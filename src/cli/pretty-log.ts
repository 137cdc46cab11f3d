import type { Writable } from 'node:stream'
import pretty from 'pino-pretty'
import { sentence, TOLD_FIELDS } from './sentence.ts'

/** Makes readable lines of the JSON that a logger writes into it. */
export function prettyText(destination: Writable, color: boolean): Writable {
  return pretty({
    destination,
    colorize: color,
    translateTime: 'SYS:HH:MM:ss',
    singleLine: true,
    ignore: TOLD_FIELDS.join(','),
    messageFormat: sentence,
  })
}
