import type { Value } from '../../../store/core/reading.ts'
import { printable } from '../../../text.ts'
import type { Format } from './format.ts'

/** On a terminal longer cells are cut. Elsewhere they are whole, and wider than their column. */
const WIDEST = 60
const BETWEEN = '  '

const UNCUT = Number.POSITIVE_INFINITY

/** Rows that decide the layout of a table, so that a large result need not be read whole before its first line is shown. */
const SAMPLE = 1000

/** One entry a column. */
type Layout = { width: number; isNumeric: boolean }[]

/**
 * A row a line, numbers to the right. `width`: that of the terminal; a table that is wider becomes a list of fields for each
 * row. Null: not a terminal, so any width will do, and nothing is cut.
 */
export function tableFormat(columns: readonly string[], width: number | null): Format {
  const sample: (readonly Value[])[] = []
  let show: ((row: readonly Value[], index: number) => string) | null = null
  let index = 0
  const begin = () => {
    const layout = layOut(columns, sample)
    const longest = width === null ? UNCUT : WIDEST
    const isWide = width !== null && widthOf(layout) > width
    show = isWide ? recordText(columns, width) : (row) => tableRow(row, layout, longest)
    const head = isWide ? '' : tableHead(columns, layout)
    if (isWide && sample.length === 0) return 'no rows\n'
    return head + sample.map(show).join('')
  }
  return {
    begin: () => '',
    row: (row) => {
      if (show) return show(row, index++)
      index++
      return sample.push(row) === SAMPLE ? begin() : ''
    },
    end: () => (show ? '' : begin()),
  }
}

function widthOf(layout: Layout): number {
  return layout.reduce((sum, { width }) => sum + width, BETWEEN.length * (layout.length - 1))
}

/** The layout that suits these rows. Later rows use it, too. */
function layOut(columns: readonly string[], rows: readonly (readonly Value[])[]): Layout {
  return columns.map((column, index) => {
    const cells = rows.map((row) => row[index] ?? null)
    const texts = [columnHeading(column), ...cells.map(shortText)]
    return {
      width: texts.reduce((widest, text) => Math.max(widest, text.length), 0),
      isNumeric: rows.length > 0 && cells.every((cell) => cell === null || isNumber(cell)),
    }
  })
}

/** The names of the columns, and a rule below them. */
function tableHead(columns: readonly string[], layout: Layout): string {
  const rule = layout.map(({ width }) => '-'.repeat(width))
  return line(columns.map(columnHeading), layout) + line(rule, layout)
}

function tableRow(row: readonly Value[], layout: Layout, longest: number): string {
  return line(
    row.map((value) => valueText(value, longest)),
    layout,
  )
}

function line(texts: readonly string[], layout: Layout): string {
  const cells = layout.map(({ width, isNumeric }, index) => {
    const text = texts[index] ?? ''
    return isNumeric ? text.padStart(width) : text.padEnd(width)
  })
  return `${cells.join(BETWEEN).trimEnd()}\n`
}

function columnHeading(column: string): string {
  return printable(column, WIDEST)
}

function shortText(value: Value): string {
  return valueText(value, WIDEST)
}

function isNumber(value: Value): boolean {
  return typeof value === 'number' || typeof value === 'bigint'
}

/** Longer values are cut: `json` has them whole. */
const LONGEST_VALUE = 4000

/** Returns a function that shows a row as a list of its fields, for a table that is wider than the terminal. */
function recordText(
  columns: readonly string[],
  width: number,
): (row: readonly Value[], index: number) => string {
  const names = columns.map((column) => printable(column, 60))
  const widest = names.reduce((most, name) => Math.max(most, name.length), 0)
  return (row, index) => {
    const title = `-- row ${index + 1} `
    const lines = names.map((name, column) =>
      `${name.padEnd(widest)}  ${valueText(row[column] ?? null, LONGEST_VALUE)}`.trimEnd(),
    )
    return `${[title.padEnd(Math.min(width, 60), '-'), ...lines].join('\n')}\n`
  }
}

/** A value on one line, safe for a terminal. */
function valueText(value: Value, longest: number): string {
  if (value === null) return ''
  if (value instanceof Uint8Array) return `x'${Buffer.from(value).toString('hex').slice(0, longest)}'`
  return printable(String(value), longest)
}
