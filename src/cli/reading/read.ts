import { assertReadingSql } from '../../store/sqlite/read/query.ts'
import type { Reader } from '../../store/sqlite/read/reader.ts'
import { isNotMadeYet, readMirror } from '../mirror-file.ts'
import { formatted } from '../output/formats/format.ts'
import { assertNamed } from './named.ts'
import { parametersOf } from './parameters.ts'
import { queryFormat } from './query-format.ts'
import type { QueryWork, ReadingTask } from './task.ts'

/**
 * Does the task. Returns what it writes, and closes the mirror at its end. Loads only what this task needs, so that a small one
 * starts fast. Throws UsageError and MirrorError.
 */
export async function read(task: ReadingTask): Promise<Iterable<string | Uint8Array>> {
  const { database, isCopy, work } = task
  if (isNotMadeYet(database)) {
    // Usage is checked before the mirror is looked at.
    if (work.kind === 'query') assertReadingSql(work.sql, parametersOf(work.parameters))
    else if (work.name !== null && !isCopy) assertNamed(work.name, work.configured)
  }
  const write = await writerOf(task)
  return reading(() => readMirror(database, isCopy), write)
}

type Write = (reader: Reader) => Iterable<string | Uint8Array>

function* reading(open: () => Reader, write: Write): Iterable<string | Uint8Array> {
  const reader = open()
  try {
    yield* write(reader)
  } finally {
    reader.close()
  }
}

async function writerOf({ work, isTerminal, width }: ReadingTask): Promise<Write> {
  if (work.kind === 'query') return (reader) => queried(reader, work, isTerminal, width)
  if (work.kind === 'export') {
    const { exported } = await import('./exported.ts')
    return (reader) => exported(reader, work, isTerminal)
  }
  const { describe } = await import('./describe.ts')
  return (reader) => describe(reader, work, width)
}

function queried(
  reader: Reader,
  { sql, format, parameters }: QueryWork,
  isTerminal: boolean,
  width: number | null,
): Iterable<string> {
  const { columns, rows } = reader.query(sql, parametersOf(parameters))
  return formatted(queryFormat(columns, { format, isTerminal, width }), rows)
}
