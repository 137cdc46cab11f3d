import { findInexactNumbers, skipNumber } from '../../../json/exact.ts'
import type { Value } from '../../../store/core/reading.ts'
import type { SentItem } from '../../../store/core/selection.ts'
import { printableJson } from '../../../text.ts'
import type { Format } from './format.ts'

/** A JSON array, an object a line; whole numbers exact. `safe`: for a terminal. */
export function jsonFormat(columns: readonly string[], safe: boolean): Format {
  const { objectOf, note } = objects(columns, safe)
  let separator = '[\n'
  return {
    begin: () => '',
    row: (row) => {
      const text = separator + objectOf(row)
      separator = ',\n'
      return text
    },
    end: () => (separator === '[\n' ? '[]\n' : '\n]\n'),
    note,
  }
}

/** A JSON object a line; whole numbers exact. `safe`: for a terminal. */
export function ndjsonFormat(columns: readonly string[], safe: boolean): Format {
  const { objectOf, note } = objects(columns, safe)
  return { begin: () => '', row: (row) => `${objectOf(row)}\n`, end: () => '', note }
}

function objects(columns: readonly string[], safe: boolean) {
  const names = columns.map((column, index) => `${index > 0 ? ',' : ''}${JSON.stringify(column)}:`)
  let hasLong = false
  return {
    objectOf: (row: readonly Value[]): string => {
      let fields = ''
      for (const [index, name] of names.entries()) {
        const value = row[index] ?? null
        if (typeof value === 'bigint' && !isKept(value)) hasLong = true
        fields += `${name}${jsonValue(value)}`
      }
      const object = `{${fields}}`
      return safe ? printableJson(object) : object
    },
    note: () => (hasLong ? LONG_NUMBERS : null),
  }
}

const MOST = BigInt(Number.MAX_SAFE_INTEGER)

/** Whether a reader that takes each number for a double, as most readers of JSON do, writes this whole number as it was. */
function isKept(value: bigint): boolean {
  return (value <= MOST && value >= -MOST) || String(Number(value)) === String(value)
}

const LONG_NUMBERS =
  'warning: there are whole numbers beyond 2^53; they are written exactly, but JavaScript, jq and many other readers of JSON round them without a word: use a reader that knows big integers, or --format csv'

/** A line for each item, as it was sent; with `envelope` inside an object that says whose it is and when it came. `safe`: for a terminal. */
export function itemFormat({ envelope, safe }: { envelope: boolean; safe: boolean }): Format<SentItem> {
  let hasLong = false
  return {
    begin: () => '',
    row: (item) => {
      // A line break in JSON is white space between values; in a string it is escaped.
      const json = item.json.replace(/[\r\n]+/g, ' ')
      if (!hasLong && LONG.test(json)) hasLong = hasLongNumbers(json)
      const line = envelope ? enveloped(item, json) : json
      return `${safe ? printableJson(line) : line}\n`
    },
    end: () => '',
    note: () => (hasLong ? LONG_NUMBERS : null),
  }
}

/** Digits of a whole number that may be beyond 2^53, or of a text: fewer digits never are. */
const LONG = /[:[,\s]-?\d{16}/

/** Whether an item has whole numbers that a double cannot hold. */
function hasLongNumbers(json: string): boolean {
  return findInexactNumbers(json).some((start) =>
    /^-?\d{16,}$/.test(json.slice(start, skipNumber(json, start))),
  )
}

/** The item is put in as text: parsing it would round numbers. */
function enveloped(
  { organizationId, organization, key, firstSeenAt, changedAt }: SentItem,
  json: string,
): string {
  const [first = null, ...others] = key.map(jsonValue)
  const own = JSON.stringify({ organization_id: organizationId, organization }).slice(1, -1)
  const times = JSON.stringify({ first_seen_at: firstSeenAt, changed_at: changedAt }).slice(1, -1)
  const shownKey = others.length === 0 ? first : `[${[first, ...others].join(',')}]`
  return `{${own},"key":${shownKey},${times},"item":${json}}`
}

/** An infinite number is written as 1e999, which is read back as infinite. */
function jsonValue(value: Value): string {
  if (value === null) return 'null'
  if (typeof value === 'string') return JSON.stringify(value)
  if (value instanceof Uint8Array) return JSON.stringify(Buffer.from(value).toString('base64'))
  if (typeof value === 'bigint' || Number.isFinite(value)) return String(value)
  return value > 0 ? '1e999' : '-1e999'
}
