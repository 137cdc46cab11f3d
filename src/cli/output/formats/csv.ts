import { stringify } from 'csv-stringify/sync'
import type { Rows, Value } from '../../../store/sqlite/read/rows.ts'
import { printable } from '../../../text.ts'

/** Rows that are written at once: a call of the library costs as much as many rows. */
const AT_ONCE = 200

export interface CsvOptions {
  /** For a terminal, which control characters must not reach. */
  safe?: boolean
  /** Whether to begin with the mark by which spreadsheets recognize UTF-8. */
  bom?: boolean
}

/** The names of the columns and the rows. NULL is nothing, an empty text is `""`, bytes are base64. */
export function* csvText(
  { columns, rows }: Rows,
  { safe = false, bom = false }: CsvOptions = {},
): Iterable<string> {
  const toLines = (some: readonly (readonly Value[])[]) =>
    // Without a cast of its own, the library would write an empty text like null.
    stringify(
      some.map((row) => row.map((value) => csvValue(value, safe))),
      { quoted_match: /^$/ },
    )
  yield (bom ? '\ufeff' : '') + toLines([columns])
  let some: Value[][] = []
  for (const row of rows) {
    if (some.push(row) < AT_ONCE) continue
    yield toLines(some)
    some = []
  }
  if (some.length > 0) yield toLines(some)
}

function csvValue(value: Value, safe: boolean): string | number | bigint | null {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  return safe && typeof value === 'string' ? printable(value, value.length) : value
}
