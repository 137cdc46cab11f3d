import type { Value } from '../../../store/core/reading.ts'
import { printableJson } from '../../../text.ts'
import { type Format, numberText } from './format.ts'

/** A JSON array, an object a line; whole numbers exact. `safe`: for a terminal. */
export function jsonFormat(columns: readonly string[], safe: boolean): Format {
  const { row } = ndjsonFormat(columns, safe)
  let separator = '[\n'
  return {
    begin: () => '',
    row: (values) => {
      const text = separator + row(values).slice(0, -1)
      separator = ',\n'
      return text
    },
    end: () => (separator === '[\n' ? '[]\n' : '\n]\n'),
  }
}

/** A JSON object a line; whole numbers exact. `safe`: for a terminal. */
export function ndjsonFormat(columns: readonly string[], safe: boolean): Format {
  const names = columns.map((column, index) => `${index > 0 ? ',' : ''}${JSON.stringify(column)}:`)
  const row = (values: readonly Value[]) => {
    let fields = ''
    for (const [index, name] of names.entries()) fields += name + jsonValue(values[index] ?? null)
    return line(`{${fields}}`, safe)
  }
  return { begin: () => '', row, end: () => '' }
}

/** Rows of one column, which holds JSON: a line each. */
export function itemFormat(safe: boolean): Format {
  const row = ([json]: readonly Value[]) => line(String(json), safe)
  return { begin: () => '', row, end: () => '' }
}

function line(json: string, safe: boolean): string {
  return `${safe ? printableJson(json) : json}\n`
}

/** An infinite number is written as 1e999, which is read back as infinite. */
function jsonValue(value: Value): string {
  if (value === null) return 'null'
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'bigint') return String(value)
  if (typeof value !== 'number') return JSON.stringify(Buffer.from(value).toString('base64'))
  if (Number.isFinite(value)) return numberText(value)
  return value > 0 ? '1e999' : '-1e999'
}
