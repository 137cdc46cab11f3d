import { printable } from '../text.ts'

/*
 * node-cron reads some slips of the pen as another schedule: `5*` as 50-59, `jan2` as December, `60-5` as 0-5. A mirror
 * that is silently synced at other times than was meant is worse than an error, so the spelling is checked before.
 */

type FieldBounds = { name: string; least: number; most: number }

const FIELDS: readonly FieldBounds[] = [
  { name: 'second', least: 0, most: 59 },
  { name: 'minute', least: 0, most: 59 },
  { name: 'hour', least: 0, most: 23 },
  { name: 'day of month', least: 1, most: 31 },
  { name: 'month', least: 1, most: 12 },
  { name: 'day of week', least: 0, most: 7 },
]

const VALUE = '(?:\\d+|[a-z]+)'
const TOKEN = new RegExp(
  `^(?:\\?|\\*(?:/\\d+)?|${VALUE}|${VALUE}-${VALUE}(?:/\\d+)?|L-\\d+|(?:\\d+|L)W|${VALUE}L|${VALUE}#[1-5])$`,
  'i',
)
const RANGE = /^(\w+)-(\w+)/

/**
 * What is misspelt in a cron expression of 5 or 6 fields, in plain words; null when nothing is. Which names and signs a
 * field may carry is not asked here.
 */
export function spellingFault(expression: string): string | null {
  const texts = expression.trim().split(/ +/)
  if (texts.length !== 5 && texts.length !== 6) return `it has ${countOf(texts)}, not 5 or 6`
  const fields = FIELDS.slice(FIELDS.length - texts.length)
  const fault = fields.findIndex((field, index) => !isWellSpelt(texts[index] ?? '', field))
  return fault === -1 ? null : fieldFault(fields[fault]?.name ?? '', texts[fault] ?? '')
}

/** The one sentence for a field that cannot be used, wherever that is found out. */
export function fieldFault(name: string, text: string): string {
  return `its ${name} field cannot be "${printable(text, 60)}"`
}

function countOf(texts: readonly string[]): string {
  if (texts[0] === '') return 'no fields'
  return texts.length === 1 ? '1 field' : `${texts.length} fields`
}

function isWellSpelt(text: string, field: FieldBounds): boolean {
  return text.split(',').every((token) => TOKEN.test(token) && rangeEnds(token).every(isWithin(field)))
}

function rangeEnds(token: string): number[] {
  const [, first, last] = RANGE.exec(token) ?? []
  return [first, last].filter((end) => end !== undefined && /^\d+$/.test(end)).map(Number)
}

function isWithin({ least, most }: FieldBounds): (value: number) => boolean {
  return (value) => value >= least && value <= most
}
