import type { Value } from '../../store/sqlite/read/reader.ts'
import { printable } from '../../text.ts'

const WIDEST = 60

/** One entry a column. */
export type Layout = { width: number; isNumeric: boolean }[]

/** The layout that suits these rows. Later rows use it, too. */
export function layOut(columns: readonly string[], rows: readonly (readonly Value[])[]): Layout {
  return columns.map((column, index) => {
    const cells = rows.map((row) => row[index] ?? null)
    const texts = [heading(column), ...cells.map(cellText)]
    return {
      width: texts.reduce((widest, text) => Math.max(widest, text.length), 0),
      isNumeric: rows.length > 0 && cells.every((cell) => cell === null || isNumber(cell)),
    }
  })
}

/** The names of the columns, and a rule below them. */
export function tableHead(columns: readonly string[], layout: Layout): string {
  const rule = layout.map(({ width }) => '-'.repeat(width))
  return line(columns.map(heading), layout) + line(rule, layout)
}

/** A row on one line, numbers to the right. */
export function tableRow(row: readonly Value[], layout: Layout): string {
  return line(row.map(cellText), layout)
}

function line(texts: readonly string[], layout: Layout): string {
  const cells = layout.map(({ width, isNumeric }, index) => {
    const text = texts[index] ?? ''
    return isNumeric ? text.padStart(width) : text.padEnd(width)
  })
  return `${cells.join('  ').trimEnd()}\n`
}

function heading(column: string): string {
  return printable(column, WIDEST)
}

function cellText(value: Value): string {
  if (value === null) return ''
  if (value instanceof Uint8Array) return `x'${Buffer.from(value).toString('hex').slice(0, WIDEST)}'`
  return printable(String(value), WIDEST)
}

function isNumber(value: Value): boolean {
  return typeof value === 'number' || typeof value === 'bigint'
}
