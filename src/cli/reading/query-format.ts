import { csvFormat } from '../output/formats/csv.ts'
import type { Format } from '../output/formats/format.ts'
import { jsonFormat, ndjsonFormat } from '../output/formats/json.ts'
import { tableFormat } from '../output/formats/table.ts'
import type { QueryFormat, ReadingTask } from './task.ts'

type Screen = Pick<ReadingTask, 'isTerminal' | 'width'>

/** How `query` writes the rows of a result. */
export function queryFormat(
  columns: readonly string[],
  { format, isTerminal, width }: Screen & { format: QueryFormat },
): Format {
  if (format === 'json') return jsonFormat(columns, isTerminal)
  if (format === 'ndjson') return ndjsonFormat(columns, isTerminal)
  return format === 'csv' ? csvFormat(columns, { safe: isTerminal }) : tableFormat(columns, width)
}
