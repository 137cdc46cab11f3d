import type { Rows, Value } from '../../../store/sqlite/read/rows.ts'
import type { SentItem } from '../../../store/sqlite/read/selection.ts'
import { printableJson } from '../../../text.ts'

/** A JSON array, an object a line; whole numbers exact. `safe`: for a terminal. */
export function* jsonText(rows: Rows, safe: boolean): Iterable<string> {
  let separator = '[\n'
  for (const object of objects(rows, safe)) {
    yield separator + object
    separator = ',\n'
  }
  yield separator === '[\n' ? '[]\n' : '\n]\n'
}

/** A JSON object a line; whole numbers exact. `safe`: for a terminal. */
export function* ndjsonText(rows: Rows, safe: boolean): Iterable<string> {
  for (const object of objects(rows, safe)) yield `${object}\n`
}

function* objects({ columns, rows }: Rows, safe: boolean): Iterable<string> {
  const names = columns.map((column, index) => `${index > 0 ? ',' : ''}${JSON.stringify(column)}:`)
  for (const row of rows) {
    let fields = ''
    for (const [index, name] of names.entries()) fields += `${name}${jsonValue(row[index] ?? null)}`
    const object = `{${fields}}`
    yield safe ? printableJson(object) : object
  }
}

/** An item as it was sent a line, or what is known of it and the item. `safe`: for a terminal. */
export function* itemLines(
  items: Iterable<SentItem>,
  { envelope, safe }: { envelope: boolean; safe: boolean },
): Iterable<string> {
  for (const item of items) {
    // A line break in JSON is white space between values; in a string it is escaped.
    const json = item.json.replace(/[\r\n]+/g, ' ')
    const line = envelope ? enveloped(item, json) : json
    yield `${safe ? printableJson(line) : line}\n`
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
