import type { ColumnTrouble } from '../store/core/column-counts.ts'
import type { StatusRow } from '../store/core/status.ts'
import { counted, grouped, jobKey, printable } from '../text.ts'

/** How many columns get a line of their own. */
const MOST_COLUMNS = 10

/** What a value is that does not fit its column, in words that hold nothing of it. */
const CLASSES: Record<NonNullable<ColumnTrouble['misfit']>, string> = {
  text: 'a text',
  boolean: 'a boolean',
  list: 'a list',
  object: 'an object',
  fraction: 'a fraction',
  large: 'a number with too many digits',
  fitting: 'a value that fits now',
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
  const names = new Set(read.map((list) => jobKey(list.organization_id, list.collection)))
  const rowsOf = (collection: string) =>
    read.filter((list) => list.collection === collection).reduce((sum, { rows }) => sum + rows, 0)
  const byColumn = [
    ...Map.groupBy(
      troubles.filter((one) => names.has(jobKey(one.organization_id, one.collection))),
      (one) => `${tableOf(one)}\0${one.column}`,
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

function misfitNote(ofColumn: readonly ColumnTrouble[], rowsOf: (collection: string) => number): string[] {
  const [worst] = ofColumn.toSorted((a, b) => b.misfits - a.misfits)
  if (!worst || worst.misfits === 0) return []
  const { collection, view, text_column: text } = worst
  const misfits = ofColumn.reduce((sum, one) => sum + one.misfits, 0)
  const others = ofColumn.filter((one) => one !== worst && one.misfits > 0).length
  const [values, doNot, are] =
    misfits === 1 ? ['the value', 'does not fit it', 'is'] : ['the values', 'do not fit it', 'are']
  const rows =
    view === null
      ? `${grouped(misfits)} of ${counted(rowsOf(collection), 'row')}`
      : counted(misfits, 'element')
  const of = `${values} of ${rows} ${doNot}`
  const objects = ofColumn.reduce((sum, one) => sum + one.objects, 0)
  const apart = objects === 0 ? '' : `, but for ${counted(objects, 'object')} with columns of their own`
  const where =
    text === null || objects === misfits ? '' : ` and ${are}, as text, in ${printable(text, 100)}${apart}`
  return [`${shownColumn(worst)}: ${of}${where} (${whose(worst, others)}${exampleOf(worst)})`]
}

/** `: a text among numbers`; nothing if no example was looked for. */
function exampleOf({ misfit, type }: ColumnTrouble): string {
  if (misfit === null) return ''
  const others = type === 'TEXT' ? 'texts' : misfit === 'fraction' ? 'whole numbers' : 'numbers'
  return `: ${CLASSES[misfit]}${misfit === 'fitting' ? '' : ` among ${others}`}`
}

function emptiedNote(ofColumn: readonly ColumnTrouble[]): string[] {
  const [first, ...others] = ofColumn.filter(({ emptied }) => emptied === 1)
  if (!first) return []
  const what = first.view === null ? 'row' : 'element'
  return [
    `${shownColumn(first)}: no ${what} of ${whose(first, others.length)} has a value any more, after earlier full walks had found some`,
  ]
}

/** Its organization, and how many others. */
function whose({ organization }: ColumnTrouble, others: number): string {
  const name = printable(organization, 40)
  return others === 0 ? name : `${name} and ${counted(others, 'other organization')}`
}

function shownColumn(trouble: ColumnTrouble): string {
  return `${printable(tableOf(trouble), 100)}.${printable(trouble.column, 100)}`
}

function tableOf({ view, collection }: ColumnTrouble): string {
  return view ?? collection
}
