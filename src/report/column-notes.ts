import type { ColumnTrouble } from '../store/column-troubles.ts'
import type { StatusRow } from '../store/status.ts'
import { counted, grouped, printable } from '../text.ts'

/** Columns that are told one by one. */
const MOST_COLUMNS = 10

/** What a value is that does not fit its column, in words that hold nothing of it. */
const CLASSES: Record<NonNullable<ColumnTrouble['misfit']>, string> = {
  text: 'a text',
  boolean: 'a boolean',
  list: 'a list',
  fraction: 'a fraction',
  large: 'a number of too many digits',
  fitting: 'a value that fits by now',
}

/**
 * A line for each column whose values do not fit it, and for each that became empty. A list that is no longer configured has no
 * more walks that could end its trouble, so nothing is said of it.
 */
export function columnNotes(
  troubles: readonly ColumnTrouble[],
  lists: readonly Pick<StatusRow, 'organization_id' | 'collection' | 'configured' | 'rows'>[],
): string[] {
  const read = lists.filter(({ configured }) => configured === 1)
  const names = new Set(read.map(nameOfList))
  const rowsOf = (collection: string) =>
    read.filter((list) => list.collection === collection).reduce((sum, { rows }) => sum + rows, 0)
  const byColumn = [
    ...Map.groupBy(
      troubles.filter((one) => names.has(nameOfList(one))),
      ({ collection, column }) => `${collection}\0${column}`,
    ).values(),
  ]
  const notes = byColumn.flatMap((ofColumn) => [...misfitNote(ofColumn, rowsOf), ...emptiedNote(ofColumn)])
  const more = notes.length - MOST_COLUMNS
  return more <= 0
    ? notes
    : [
        ...notes.slice(0, MOST_COLUMNS),
        `${counted(more, 'further column')} with such values, or empty: see misfits and filled in sync_columns`,
      ]
}

function nameOfList(of: Pick<StatusRow, 'organization_id' | 'collection'>): string {
  return `${of.organization_id} ${of.collection}`
}

function misfitNote(ofColumn: readonly ColumnTrouble[], rowsOf: (collection: string) => number): string[] {
  const [worst] = ofColumn.toSorted((a, b) => b.misfits - a.misfits)
  if (!worst || worst.misfits === 0) return []
  const { collection, text_column: text } = worst
  const misfits = ofColumn.reduce((sum, one) => sum + one.misfits, 0)
  const [values, do_not, are] =
    misfits === 1 ? ['the value', 'does not fit it', 'is'] : ['the values', 'do not fit it', 'are']
  const of = `${values} of ${grouped(misfits)} of ${counted(rowsOf(collection), 'row')} ${do_not}`
  const where = text === null ? '' : ` and ${are}, as text, in ${printable(text, 100)}`
  const move = worst.misfit === 'fitting' ? `; "admin-mirror rebuild ${collection}" moves what fits` : ''
  return [
    `${nameOf(worst)}: ${of}${where} (${printable(worst.organization, 40)}: ${exampleOf(worst)}${move})`,
  ]
}

/** `a text among numbers`. */
function exampleOf({ misfit, type }: ColumnTrouble): string {
  const others = type === 'TEXT' ? 'texts' : misfit === 'fraction' ? 'whole numbers' : 'numbers'
  return misfit === null || misfit === 'fitting' ? CLASSES.fitting : `${CLASSES[misfit]} among ${others}`
}

function emptiedNote(ofColumn: readonly ColumnTrouble[]): string[] {
  const [first, ...others] = ofColumn.filter(({ emptied }) => emptied === 1)
  if (!first) return []
  const more = others.length === 0 ? '' : ` and of ${counted(others.length, 'other organization')}`
  return [
    `${nameOf(first)}: no row of ${printable(first.organization, 40)}${more} has a value any more, after earlier full walks had found some`,
  ]
}

function nameOf({ collection, column }: ColumnTrouble): string {
  return `${collection}.${printable(column, 100)}`
}
