import { UsageError } from '../../errors.ts'
import type { Reader } from '../../store/sqlite/read/reader.ts'
import type { Selection } from '../../store/sqlite/read/selection.ts'
import { printable } from '../../text.ts'
import { csvText } from '../output/formats/csv.ts'
import { itemLines, ndjsonText } from '../output/formats/json.ts'
import { parquetBytes } from '../output/formats/parquet.ts'
import { findNamed } from './named.ts'
import type { ExportWork } from './task.ts'

/** The rows of a collection or of a view of it; as NDJSON, a collection's items as they were sent. */
export function exported(
  reader: Reader,
  work: ExportWork,
  isTerminal: boolean,
): Iterable<string | Uint8Array> {
  const { name, format, envelope, bom } = work
  const listed = findNamed(reader, name, work.configured)
  const isCollection = listed.name === listed.collection
  if (envelope && !isCollection)
    throw new UsageError(
      `--envelope is for the items of a collection, and ${name} has none; its rows say whose they are`,
    )
  const { organizations, since } = work
  const organizationIds = organizations && [...organizations.ids, ...idsOf(reader, organizations.typed)]
  const selection: Selection = { organizationIds, since }
  if (format === 'ndjson' && isCollection)
    return itemLines(reader.items(name, selection), { envelope, safe: isTerminal })
  const rows = reader.rows(listed, selection)
  if (format === 'parquet') return parquetBytes(rows)
  if (format === 'csv') return csvText(rows, { safe: isTerminal, bom })
  const isNamed = listed.columns.some((column) => column.name === '_organization')
  return ndjsonText(isNamed ? rows : withoutName(rows), isTerminal)
}

/** NDJSON is rows as they stand; the organization's name is for what spreadsheets and data frames read. */
function withoutName({ columns, rows }: ReturnType<Reader['rows']>) {
  const at = columns.indexOf('_organization')
  return { columns: columns.toSpliced(at, 1), rows: mapped(rows, (row) => row.toSpliced(at, 1)) }
}

function* mapped<T, U>(values: Iterable<T>, change: (value: T) => U): Iterable<U> {
  for (const value of values) yield change(value)
}

/** The ids of organizations that are named by name or UUID. One that left the configuration may have the name of another. */
function idsOf(reader: Reader, names: readonly string[]): string[] {
  const known = reader.organizations()
  return names.flatMap((name) => {
    const found = known.filter((one) => one.id === name.toLowerCase() || one.name === name)
    if (found.length > 0) return found.map(({ id }) => id)
    const all = known.map((one) => one.name).join(', ')
    throw new UsageError(
      `--org ${printable(name)}: the mirror has no organization of this name or UUID (it has: ${printable(all, 1000)})`,
    )
  })
}
