import type { Value } from '../mirror/reader.ts'
import { printable } from '../text.ts'

const WIDEST = 60

/** Rows as aligned text, numbers to the right. Whatever the data holds, each row stays on its line. */
export function formatTable(columns: readonly string[], rows: readonly (readonly Value[])[]): string {
  const cells = rows.map((row) => row.map(cellText))
  const widths = columns.map((column, index) =>
    Math.max(width(column), ...cells.map((row) => width(row[index] ?? ''))),
  )
  const isNumeric = columns.map(
    (_, index) => rows.length > 0 && rows.every((row) => row[index] === null || isNumber(row[index])),
  )
  const line = (texts: readonly string[]) =>
    texts
      .map((text, index) =>
        isNumeric[index] ? text.padStart(widths[index] ?? 0) : text.padEnd(widths[index] ?? 0),
      )
      .join('  ')
      .trimEnd()
  const rule = widths.map((columnWidth) => '-'.repeat(columnWidth))
  return [line(columns.map((column) => printable(column, WIDEST))), rule.join('  '), ...cells.map(line)]
    .map((text) => `${text}\n`)
    .join('')
}

function isNumber(value: Value | undefined): boolean {
  return typeof value === 'number' || typeof value === 'bigint'
}

function cellText(value: Value): string {
  if (value === null) return ''
  if (value instanceof Uint8Array) return `x'${Buffer.from(value).toString('hex').slice(0, WIDEST)}'`
  return printable(String(value), WIDEST)
}

function width(text: string): number {
  return text.length
}
