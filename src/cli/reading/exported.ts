import { UsageError } from '../../errors.ts'
import { tableName } from '../../store/columns/catalog.ts'
import {
  findListed,
  type Listed,
  listedOrganizations,
  type TypedRows,
  type Value,
} from '../../store/core/reading.ts'
import { type Selection, selectItems, selectRows, sentItem } from '../../store/core/selection.ts'
import { printable } from '../../text.ts'
import { csvFormat } from '../output/formats/csv.ts'
import { type Format, formatted, type Tell } from '../output/formats/format.ts'
import { itemFormat, ndjsonFormat } from '../output/formats/json.ts'
import { parquetFormat } from '../output/formats/parquet.ts'
import { findNamed, isOfMirror, mirrorTable } from './named.ts'
import type { ExportWork, ReadableMirror, ReadingTask } from './read.ts'

/** The rows of a collection, of a view of it, or of a table that every mirror has; as NDJSON, a collection's items as they were sent. */
export async function exported(
  mirror: ReadableMirror,
  work: ExportWork,
  { configured, isTerminal }: Pick<ReadingTask, 'configured' | 'isTerminal'>,
  tell: Tell,
): Promise<AsyncIterable<Uint8Array>> {
  const { name, format, envelope, organizations, since, sinceSeq } = work
  const listed = isOfMirror(name) ? null : await findNamed(mirror, name, configured)
  assertEnvelope(name, listed?.collection ?? '', envelope)
  const organizationIds = organizations && [
    ...organizations.ids,
    ...idsOf(await mirror.ask(listedOrganizations()), organizations.typed),
  ]
  const selection: Selection = { organizationIds, since, sinceSeq }
  if (!listed) {
    const { sql, types } = mirrorTable(name, selection)
    const { columns, batches } = await mirror.query({ sql, parameters: [] })
    return formatted(exportFormat(null, { columns, types }, work, isTerminal), batches, tell)
  }
  const { dialect } = mirror
  if (format === 'ndjson' && name === listed.collection) {
    const raw = await mirror.ask(findListed(dialect, tableName(name, 'raw')))
    const items = raw ? mirror.select(selectItems(dialect, raw, selection)) : []
    return formatted(sentFormat(envelope, isTerminal), items, tell)
  }
  const { read, ...head } = selectRows(dialect, listed, selection)
  return formatted(exportFormat(listed, head, work, isTerminal), mirror.select(read), tell)
}

/** How `export` writes items as they were sent. */
function sentFormat(envelope: boolean, isTerminal: boolean): Format {
  const format = itemFormat({ envelope, safe: isTerminal })
  return { ...format, row: (row) => format.row(sentItem(row as readonly string[])) }
}

/** How `export` writes the rows of a table or view that is `listed`; null: of one that every mirror has. */
function exportFormat(
  listed: Pick<Listed, 'columns'> | null,
  { columns, types }: Pick<TypedRows, 'columns' | 'types'>,
  { format, bom }: Pick<ExportWork, 'format' | 'bom'>,
  isTerminal: boolean,
): Format<readonly Value[], string | Uint8Array> {
  if (format === 'parquet') return parquetFormat({ columns, types })
  if (format === 'csv') return csvFormat(columns, { safe: isTerminal, bom })
  const isOwn = !listed || listed.columns.some(({ name }) => name === '_organization')
  return isOwn
    ? ndjsonFormat(columns, isTerminal)
    : withoutName(columns, (rest) => ndjsonFormat(rest, isTerminal))
}

/** NDJSON has the rows without the organization's name, which is for spreadsheets and data frames. */
function withoutName(columns: readonly string[], formatOf: (columns: readonly string[]) => Format): Format {
  const at = columns.indexOf('_organization')
  const format = formatOf(columns.toSpliced(at, 1))
  return { ...format, row: (row) => format.row(row.toSpliced(at, 1)) }
}

/** Throws UsageError where the rows of this name are no items. */
function assertEnvelope(name: string, collection: string, envelope: boolean): void {
  if (envelope && name !== collection)
    throw new UsageError(
      `--envelope is for the items of a collection, and ${name} has none; its rows say whose they are`,
    )
}

/** The ids of organizations that are named by name or UUID. One that left the configuration may have the name of another. */
function idsOf(known: readonly { id: string; name: string }[], names: readonly string[]): readonly string[] {
  return names.flatMap((name) => {
    const found = known.filter((one) => one.id === name.toLowerCase() || one.name === name)
    if (found.length > 0) return found.map(({ id }) => id)
    const all = known.map((one) => one.name).join(', ')
    throw new UsageError(
      `--org ${printable(name)}: the mirror has no organization of this name or UUID (it has: ${printable(all, 1000)})`,
    )
  })
}
