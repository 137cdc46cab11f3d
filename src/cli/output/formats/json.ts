import type { Value } from '../../../store/sqlite/read/rows.ts'
import type { SentItem } from '../../../store/sqlite/read/selection.ts'
import { printableJson } from '../../../text.ts'
import type { Format } from './format.ts'

/** A JSON array, an object a line; whole numbers exact. `safe`: for a terminal. */
export function jsonFormat(columns: readonly string[], safe: boolean): Format {
  const objectOf = objects(columns, safe)
  let separator = '[\n'
  return {
    begin: () => '',
    row: (row) => {
      const text = separator + objectOf(row)
      separator = ',\n'
      return text
    },
    end: () => (separator === '[\n' ? '[]\n' : '\n]\n'),
  }
}

/** A JSON object a line; whole numbers exact. `safe`: for a terminal. */
export function ndjsonFormat(columns: readonly string[], safe: boolean): Format {
  const objectOf = objects(columns, safe)
  return { begin: () => '', row: (row) => `${objectOf(row)}\n`, end: () => '' }
}

function objects(columns: readonly string[], safe: boolean): (row: readonly Value[]) => string {
  const names = columns.map((column, index) => `${index > 0 ? ',' : ''}${JSON.stringify(column)}:`)
  return (row) => {
    let fields = ''
    for (const [index, name] of names.entries()) fields += `${name}${jsonValue(row[index] ?? null)}`
    const object = `{${fields}}`
    return safe ? printableJson(object) : object
  }
}

/** An item as it was sent a line, or what is known of it and the item. `safe`: for a terminal. */
export function itemFormat({ envelope, safe }: { envelope: boolean; safe: boolean }): Format<SentItem> {
  return {
    begin: () => '',
    row: (item) => {
      // A line break in JSON is white space between values; in a string it is escaped.
      const json = item.json.replace(/[\r\n]+/g, ' ')
      const line = envelope ? enveloped(item, json) : json
      return `${safe ? printableJson(line) : line}\n`
    },
    end: () => '',
  }
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

/** A number beyond a double's range is read back as such. */
export function jsonValue(value: Value): string {
  if (value === null) return 'null'
  if (typeof value === 'string') return JSON.stringify(value)
  if (value instanceof Uint8Array) return JSON.stringify(Buffer.from(value).toString('base64'))
  if (typeof value === 'bigint' || Number.isFinite(value)) return String(value)
  return value > 0 ? '1e999' : '-1e999'
}
