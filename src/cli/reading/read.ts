import { assertReadingSql } from '../../store/sqlite/read/query.ts'
import type { Reader } from '../../store/sqlite/read/reader.ts'
import { isNotMadeYet, readMirror } from '../mirror-file.ts'
import { csvText } from '../output/formats/csv.ts'
import { jsonText, ndjsonText } from '../output/formats/json.ts'
import { tableText } from '../output/formats/table.ts'
import { describe } from './describe.ts'
import { exported } from './exported.ts'
import { assertNamed } from './named.ts'
import { parametersOf } from './parameters.ts'
import type { QueryWork, ReadingTask } from './task.ts'

/** Does the task, and yields what it writes. Throws UsageError and MirrorError. */
export function* read(task: ReadingTask): Iterable<string | Uint8Array> {
  const { database, isCopy, work } = task
  if (isNotMadeYet(database)) {
    // Usage is checked before the mirror is looked at.
    if (work.kind === 'query') assertReadingSql(work.sql, parametersOf(work.parameters))
    else if (work.name !== null && !isCopy) assertNamed(work.name, work.configured)
  }
  const reader = readMirror(database, isCopy)
  try {
    yield* pieces(reader, task)
  } finally {
    reader.close()
  }
}

function pieces(reader: Reader, task: ReadingTask): Iterable<string | Uint8Array> {
  const { work, isTerminal, width } = task
  if (work.kind === 'query') return queried(reader, work, isTerminal, width)
  if (work.kind === 'export') return exported(reader, work, isTerminal)
  return describe(reader, work, width)
}

function queried(
  reader: Reader,
  { sql, format, parameters }: QueryWork,
  isTerminal: boolean,
  width: number | null,
): Iterable<string> {
  const rows = reader.query(sql, parametersOf(parameters))
  if (format === 'json') return jsonText(rows, isTerminal)
  if (format === 'ndjson') return ndjsonText(rows, isTerminal)
  return format === 'csv' ? csvText(rows, { safe: isTerminal }) : tableText(rows, width)
}
