import type { Value } from '../../store/sqlite/read/rows.ts'
import type { TypedRows } from '../../store/sqlite/read/selection.ts'
import { csvFormat } from '../output/formats/csv.ts'
import type { Format } from '../output/formats/format.ts'
import { jsonFormat, ndjsonFormat } from '../output/formats/json.ts'
import { tableFormat } from '../output/formats/table.ts'
import type { QueryFormat, ReadingTask } from './task.ts'

type Screen = Pick<ReadingTask, 'isTerminal' | 'width'>

/** How `query` writes the rows of a result. */
export async function queryFormat(
  { columns, types }: Pick<TypedRows, 'columns' | 'types'>,
  { format, isTerminal, width }: Screen & { format: QueryFormat },
): Promise<Format<readonly Value[], string | Uint8Array>> {
  if (format === 'parquet') {
    const { parquetFormat } = await import('../output/formats/parquet.ts')
    return parquetFormat({ columns, types })
  }
  if (format === 'json') return jsonFormat(columns, isTerminal)
  if (format === 'ndjson') return ndjsonFormat(columns, isTerminal)
  return format === 'csv' ? csvFormat(columns, { safe: isTerminal }) : tableFormat(columns, width)
}
