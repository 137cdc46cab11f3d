import type { Value } from '../../../store/sqlite/read/rows.ts'
import { printable } from '../../../text.ts'

/** Longer values are cut: `json` has them whole. */
const LONGEST = 4000

/** Returns a function that shows a row as a list of its fields, for a table that is wider than the terminal. */
export function recordText(
  columns: readonly string[],
  width: number,
): (row: readonly Value[], index: number) => string {
  const names = columns.map((column) => printable(column, 60))
  const widest = names.reduce((most, name) => Math.max(most, name.length), 0)
  return (row, index) => {
    const title = `-- row ${index + 1} `
    const lines = names.map((name, column) =>
      `${name.padEnd(widest)}  ${valueText(row[column] ?? null, LONGEST)}`.trimEnd(),
    )
    return `${[title.padEnd(Math.min(width, 60), '-'), ...lines].join('\n')}\n`
  }
}

/** A value on one line, safe for a terminal. */
export function valueText(value: Value, longest: number): string {
  if (value === null) return ''
  if (value instanceof Uint8Array) return `x'${Buffer.from(value).toString('hex').slice(0, longest)}'`
  return printable(String(value), longest)
}
