import type { Value } from '../../../store/core/reading.ts'
import { printable } from '../../../text.ts'
import { type Format, numberText } from './format.ts'

/**
 * The names of the columns and the rows, by RFC 4180 with line feeds. NULL is nothing, an empty text is `""`, bytes are base64.
 * Own code, since a million rows take 5 seconds here and 22 with a library, and most libraries write NULL and `""` alike.
 * `safe`: for a terminal, which control characters must not reach.
 */
export function csvFormat(columns: readonly string[], safe: boolean): Format {
  const row = (values: readonly Value[]) => `${values.map((value) => cellText(value, safe)).join(',')}\n`
  return { begin: () => row(columns), row, end: () => '' }
}

function cellText(value: Value, safe: boolean): string {
  if (value === null) return ''
  if (typeof value === 'string') return textCell(safe ? printable(value, value.length) : value)
  if (typeof value === 'number') return numberText(value)
  return typeof value === 'bigint' ? String(value) : textCell(Buffer.from(value).toString('base64'))
}

/** A byte order mark at the beginning of a text would vanish without quotes. */
const MUST_BE_QUOTED = /[",\r\n]|^$|^\ufeff/

function textCell(text: string): string {
  return MUST_BE_QUOTED.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
