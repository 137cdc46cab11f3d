import type { Notice } from '../../../sync/types.ts'
import type { Catalog } from '../../columns/catalog.ts'
import type { SqlValue } from '../../columns/column.ts'
import type { TypedRow } from '../../columns/row.ts'
import { storable } from '../sql.ts'

// PostgreSQL keeps a row on one page. It stores a long text elsewhere, but never one of up to 24 bytes, so that a row of several hundred
// short texts is refused (SQLSTATE 54000), and the whole list with it.

/** Bytes of the largest row (MaxHeapTupleSize). */
const LARGEST_ROW = 8160

/** Our own columns before the key: the organization, and two times. */
const OWN_BYTES = 37 + 3 + 2 * 8

/** The most that a text takes in its row: a compressed one of 24 bytes, aligned; longer ones leave a pointer of 18. */
const TEXT_BYTES = 27

/** A column that holds nothing takes a bit. */
const HEADER_BYTES = 23

/** Columns that somebody else may have added, or dropped. */
const SPARE_COLUMNS = 64

/** The row with as many of its values as surely fit, in the order of the columns. */
export function withinPage(
  { columns, keyPaths }: Pick<Catalog, 'columns' | 'keyPaths'>,
  row: TypedRow,
): TypedRow {
  const header = HEADER_BYTES + Math.ceil((columns.length + SPARE_COLUMNS) / 8)
  const room = LARGEST_ROW - aligned(header) - aligned(OWN_BYTES + keyPaths.length * TEXT_BYTES)
  // As nearly all rows: nothing has to be measured.
  if (row.values.size * TEXT_BYTES <= room) return { ...row, leftOut: 0 }
  const values = new Map<string, SqlValue>()
  let bytes = 0
  for (const { name } of columns) {
    const value = row.values.get(name)
    if (value === undefined) continue
    const end = endOf(value, bytes)
    if (end > room) continue
    bytes = end
    values.set(name, value)
  }
  const arrays = row.arrays.filter(({ column }) => values.has(column))
  return { values, arrays, leftOut: row.values.size - values.size }
}

export function fullNotice(rows: readonly TypedRow[]): Notice[] {
  const some = rows.filter(({ leftOut = 0 }) => leftOut > 0).length
  if (some === 0) return []
  const message = `${some} of its items have more values than a row of PostgreSQL holds (8 kB): those of their last columns stay in _json only`
  return [{ level: 'warn', message }]
}

/** Where a value ends that is stored from here on. */
function endOf(value: SqlValue, from: number): number {
  if (value === null) return from
  if (typeof value !== 'string') return aligned(from) + 8
  if (value.length >= TEXT_BYTES) return from + TEXT_BYTES
  return from + Math.min(Buffer.byteLength(storable(value)) + 1, TEXT_BYTES)
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / 8) * 8
}
