import { missedText } from '../../report/status.ts'
import { counted, grouped, inWords, printable } from '../../text.ts'

/** A line of the log with its fields. */
export type LogFields = Record<string, unknown>

/** Fields that a sentence contains already, or that a terminal does not need. */
export const HIDDEN_FIELDS = [
  'event',
  'run_id',
  'duration_ms',
  'lists',
  'failed',
  'busy',
  'owner',
  'left_ms',
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
  'pages',
  'items',
  'rows_seen',
  'rows_added',
  'rows_changed',
  'rows_removed',
  'requests',
  'retries',
  'rate_limit_hits',
  'rate_limit_wait_ms',
  'coverage',
  'expected_missed',
  'error_code',
  'error_message',
]

/** A line of the log as text: the job, the message, and the numbers that matter. */
export function sentence(line: LogFields, messageKey: string): string {
  const message = textOf(line[messageKey])
  const list = textOf(line.organization, line.collection)
  // Messages of errors name the list themselves.
  const text = message.startsWith(`${list} `) ? message : textOf(line.organization, line.collection, message)
  return printable([text, ...details(line, message)].join(', '), LONGEST)
}

function textOf(...words: unknown[]): string {
  return words.filter((word) => typeof word === 'string').join(' ')
}

/** Messages are cut and cleaned where they are made. This catches one that was not. */
const LONGEST = 2000

function details(line: LogFields, message: string): string[] {
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
  return [
    counted(number('pages'), 'page'),
    `${counted(number(line.items === undefined ? 'rows_seen' : 'items'), 'row')} (${grouped(number('rows_added'))} new, ${grouped(number('rows_changed'))} changed${removed})`,
    ...(typeof line.coverage === 'string'
      ? [`${line.coverage}${missedText(number('expected_missed'))}`]
      : []),
    ...(waitMs >= 1000 ? [`${inWords(waitMs)} at the rate limit`] : []),
  ]
}
