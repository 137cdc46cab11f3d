import type { Config } from '../../config/config.ts'
import { UsageError } from '../../errors.ts'
import { findListed, listedNames, selectItems, selectRows } from '../../store/postgres/read/selection.ts'
import type { TypedRows } from '../../store/sqlite/read/selection.ts'
import { printable } from '../../text.ts'
import { csvText } from '../output/formats/csv.ts'
import { itemLines, ndjsonText } from '../output/formats/json.ts'
import type { OutputFile } from '../output/output-file.ts'
import { screenOf } from '../reading/output.ts'
import type { ExportWork } from '../reading/task.ts'
import type { Runtime } from '../runtime.ts'
import { withReader, write } from './read.ts'

interface Export extends Omit<ExportWork, 'kind' | 'organizations'> {
  /** Ids; null: all. */
  organizations: readonly string[] | null
}

/** `export`: the rows of a collection or of a view of it; as NDJSON, a collection's items as they were sent. */
export async function exportPostgres(
  config: Config,
  runtime: Runtime,
  { name, format, organizations: organizationIds, since, envelope, bom, configured }: Export,
  output: OutputFile | null,
): Promise<number> {
  const { isTerminal: safe } = screenOf(runtime, output)
  const pieces = await withReader(config, runtime, output, async (sql) => {
    const listed = await findListed(sql, name)
    if (!listed) throw unknown(name, configured, await listedNames(sql))
    const isCollection = name === listed.collection
    if (envelope && !isCollection)
      throw new UsageError(
        `--envelope is for the items of a collection, and ${name} has none; its rows say whose they are`,
      )
    const selection = { organizationIds, since }
    if (format === 'ndjson' && isCollection)
      return itemLines(await selectItems(sql, listed, selection), { envelope, safe })
    const rows = await selectRows(sql, listed, selection)
    if (format === 'csv') return csvText(rows, { safe, bom })
    if (format === 'ndjson') return ndjsonText(withoutName(rows), safe)
    const { parquetBytes } = await import('../output/formats/parquet.ts')
    return parquetBytes(rows)
  })
  return write(runtime, output, pieces)
}

/** NDJSON is rows as they stand; the organization's name is for what spreadsheets and data frames read. */
function withoutName({ columns, rows }: TypedRows): Pick<TypedRows, 'columns' | 'rows'> {
  const at = columns.indexOf('_organization')
  return { columns: columns.toSpliced(at, 1), rows: [...rows].map((row) => row.toSpliced(at, 1)) }
}

function unknown(name: string, configured: readonly string[], known: readonly string[]): UsageError {
  if (configured.includes(name))
    return new UsageError(`nothing of ${name} was synced yet; "admin-mirror sync" does it`)
  const names = known.length > 0 ? `; there are: ${printable(known.join(', '), 1000)}` : ''
  return new UsageError(
    `there is no collection ${printable(name)}, neither in the configuration nor in the mirror, and no view of one with that name${names}`,
  )
}
