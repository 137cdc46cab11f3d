import type { MisfitColumn } from '../store/core/misfits.ts'
import { counted, printable } from '../text.ts'

/** How many columns get a line of their own. */
const MOST_COLUMNS = 10

/** A line for each column NAME__text that has values. */
export function misfitNotes(misfits: readonly MisfitColumn[]): string[] {
  const lines = misfits
    .slice(0, MOST_COLUMNS)
    .map(
      ({ collection, column, rows }) =>
        `${printable(collection, 100)}.${printable(column, 100)} has the values of ${counted(rows, 'row')} that did not fit the column beside it`,
    )
  const more = misfits.length - lines.length
  return more <= 0 ? lines : [...lines, `${counted(more, 'further column')} of such values: see sync_columns`]
}
