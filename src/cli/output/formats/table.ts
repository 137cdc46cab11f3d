import type { Value } from '../../../store/core/reading.ts'
import { printable } from '../../../text.ts'
import { type Format, numberText } from './format.ts'

/** On a terminal longer cells are cut. Elsewhere they are whole, and wider than their column. */
const WIDEST = 60

/** Rows that decide the layout of a table, so that a large result need not be read whole before its first line is shown. */
const SAMPLE = 1000

/** A row a line, numbers to the right, safe for a terminal. */
export function tableFormat(columns: readonly string[], isTerminal: boolean): Format {
  const longest = isTerminal ? WIDEST : Number.POSITIVE_INFINITY
  const sample: (readonly Value[])[] = []
  let show: ((row: readonly Value[]) => string) | null = null
  const begin = () => {
    const layout = columns.map((column, index) =>
      layOut(
        column,
        sample.map((row) => row[index] ?? null),
      ),
    )
    const line = (texts: readonly string[]) =>
      `${layout
        .map((fitted, at) => fitted(texts[at] ?? ''))
        .join('  ')
        .trimEnd()}\n`
    const headings = columns.map((column) => printable(column, WIDEST))
    show = (row) => line(row.map((value) => cellText(value, longest)))
    return (
      line(headings) + line(layout.map((fitted) => '-'.repeat(fitted('').length))) + sample.map(show).join('')
    )
  }
  return {
    begin: () => '',
    row: (row) => {
      if (show) return show(row)
      return sample.push(row) === SAMPLE ? begin() : ''
    },
    end: () => (show ? '' : begin()),
  }
}

/** Returns a function that makes the texts of a column as wide as its first cells need. */
function layOut(column: string, cells: readonly Value[]): (text: string) => string {
  const texts = [printable(column, WIDEST), ...cells.map((cell) => cellText(cell, WIDEST))]
  const width = texts.reduce((widest, text) => Math.max(widest, text.length), 0)
  const isNumeric = cells.length > 0 && cells.every(isNumber)
  return (text) => (isNumeric ? text.padStart(width) : text.padEnd(width))
}

function isNumber(cell: Value): boolean {
  return cell === null || typeof cell === 'number' || typeof cell === 'bigint'
}

function cellText(value: Value, longest: number): string {
  if (value === null) return ''
  if (value instanceof Uint8Array) return `x'${Buffer.from(value).toString('hex').slice(0, longest)}'`
  return typeof value === 'number' ? numberText(value) : printable(String(value), longest)
}
