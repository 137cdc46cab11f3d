import { printable } from '../text.ts'
import { findCronFault } from './cron.ts'

type FieldBounds = { name: string; least: number; most: number }

const FIELDS: readonly FieldBounds[] = [
  { name: 'second', least: 0, most: 59 },
  { name: 'minute', least: 0, most: 59 },
  { name: 'hour', least: 0, most: 23 },
  { name: 'day of month', least: 1, most: 31 },
  { name: 'month', least: 1, most: 12 },
  { name: 'day of week', least: 0, most: 7 },
]

/**
 * Returns what is wrong with a cron expression (5 or 6 fields, or a word like `@daily`), or null. One that can never
 * fire (30 February) is wrong, too. A day must match both its day of month and its day of week.
 */
export function checkCron(expression: string): string | null {
  if (isPlain(expression)) return null
  const misspelt = expression.trim().startsWith('@') ? null : spellingFault(expression)
  if (misspelt !== null) return misspelt
  const fault = findCronFault(expression)
  return fault === null || typeof fault === 'string' ? fault : fieldFault(fault.field, fault.text)
}

/** Every month has this day, February in leap years only; and over the years every date falls on every day of the week. */
const EVERY_MONTH_HAS = 29

const PLAIN_PART = /^(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:\/(\d{1,2}))?$/

/**
 * Whether a cron expression is right at first sight: 5 or 6 fields of `*`, numbers, rising ranges and steps, which
 * fires in every month that it names. False proves nothing: names, `L` or the 31st need node-cron.
 */
export function isPlain(expression: string): boolean {
  // Spaces only: node-cron refuses the other white space that trim() removes, but only when it fires.
  const texts = expression.replace(/^ +| +$/g, '').split(/ +/)
  const fields = fieldsOf(texts)
  if (fields === null || !hasCommonDay(texts)) return false
  return fields.every((field, index) => isPlainField(texts[index] ?? '', field))
}

function isPlainField(text: string, { least, most }: FieldBounds): boolean {
  return text.split(',').every((part) => {
    const [whole, first, last = first, step] = PLAIN_PART.exec(part) ?? []
    if (whole === undefined || (step !== undefined && (Number(step) < 1 || Number(step) > most))) return false
    if (first === undefined) return true
    // A step behind a single number can be read in two ways.
    const isRange = whole.includes('-') || step === undefined
    return isRange && least <= Number(first) && Number(first) <= Number(last) && Number(last) <= most
  })
}

/** Whether one of the days of month is in every month. */
function hasCommonDay(texts: readonly string[]): boolean {
  const days = texts.at(-3) ?? ''
  return days.split(',').some((part) => part.startsWith('*') || Number.parseInt(part, 10) <= EVERY_MONTH_HAS)
}

/** The field of each text; null unless there are 5 or 6. */
function fieldsOf(texts: readonly string[]): readonly FieldBounds[] | null {
  return texts.length === 5 || texts.length === 6 ? FIELDS.slice(-texts.length) : null
}

const VALUE = '(?:\\d+|[a-z]+)'
const CRON_PART = new RegExp(
  `^(?:\\?|\\*(?:/\\d+)?|${VALUE}|${VALUE}-${VALUE}(?:/\\d+)?|L-\\d+|(?:\\d+|L)W|${VALUE}L|${VALUE}#[1-5])$`,
  'i',
)
const RANGE = /^(\w+)-(\w+)/

/**
 * Returns what is misspelt in a cron expression, or null. node-cron reads some slips as another schedule: `5*` as
 * 50-59, `jan2` as December, `60-5` as 0-5. Which names and signs a field may have is left to it.
 */
function spellingFault(expression: string): string | null {
  const texts = expression.trim().split(/ +/)
  const fields = fieldsOf(texts)
  if (fields === null) return `it has ${fieldCount(texts)}, not 5 or 6`
  const fault = fields.findIndex((field, index) => !isWellSpelt(texts[index] ?? '', field))
  return fault === -1 ? null : fieldFault(fields[fault]?.name ?? '', texts[fault] ?? '')
}

function fieldFault(name: string, text: string): string {
  return `its ${name} field cannot be "${printable(text, 60)}"`
}

function fieldCount(texts: readonly string[]): string {
  if (texts[0] === '') return 'no fields'
  return texts.length === 1 ? '1 field' : `${texts.length} fields`
}

function isWellSpelt(text: string, { least, most }: FieldBounds): boolean {
  return text
    .split(',')
    .every((token) => CRON_PART.test(token) && rangeEnds(token).every((end) => least <= end && end <= most))
}

function rangeEnds(token: string): number[] {
  const [, first, last] = RANGE.exec(token) ?? []
  return [first, last].filter((end) => end !== undefined && /^\d+$/.test(end)).map(Number)
}
