import { assertReadingSql } from '../../store/sqlite/read/query.ts'
import type { Value } from '../../store/sqlite/read/rows.ts'
import type { TypedRows } from '../../store/sqlite/read/selection.ts'
import { isNotMadeYet, readMirror } from '../mirror-file.ts'
import { csvFormat } from '../output/formats/csv.ts'
import { type Format, formatted, type Tell } from '../output/formats/format.ts'
import { jsonFormat, ndjsonFormat } from '../output/formats/json.ts'
import { tableFormat } from '../output/formats/table.ts'
import { assertNameOf } from './named.ts'
import { parametersOf, type ReadableMirror, readableFile } from './readable-mirror.ts'
import type { QueryFormat, ReadingTask } from './task.ts'

/** Does the task on a mirror in a file, and yields what it writes. Throws UsageError and MirrorError. */
export async function* read(task: ReadingTask, tell: Tell): AsyncIterable<Uint8Array> {
  const { database, isCopy, work } = task
  if (isNotMadeYet(database)) {
    // Usage is checked before the mirror is looked at.
    if (work.kind === 'query') assertReadingSql(work.sql, parametersOf(work.parameters))
    else if (!isCopy) assertNameOf(work)
  }
  const reader = readMirror(database, isCopy)
  try {
    yield* await written(readableFile(reader), task, tell)
  } finally {
    reader.close()
  }
}

/** What the task writes of a mirror of either kind. Loads only what it needs, so that a small one starts fast. */
export async function written(
  mirror: ReadableMirror,
  { work, isTerminal, width }: Pick<ReadingTask, 'work' | 'isTerminal' | 'width'>,
  tell: Tell,
): Promise<AsyncIterable<Uint8Array>> {
  if (work.kind === 'query') {
    const { batches, ...head } = await mirror.query(work)
    return formatted(await queryFormat(head, { format: work.format, isTerminal, width }), batches, tell)
  }
  if (work.kind === 'export') {
    const { exported } = await import('./exported.ts')
    return exported(mirror, work, isTerminal, tell)
  }
  const { describe } = await import('./describe.ts')
  return describe(mirror, work, width)
}

type Screen = Pick<ReadingTask, 'isTerminal' | 'width'>

/** How `query` writes the rows of a result. */
async function queryFormat(
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
