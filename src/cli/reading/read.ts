import { assertReadingSql } from '../../store/sqlite/read/query.ts'
import { isNotMadeYet, readMirror } from '../mirror-file.ts'
import { formatted, type Tell } from '../output/formats/format.ts'
import { assertNameOf } from './named.ts'
import { parametersOf } from './parameters.ts'
import { queryFormat } from './query-format.ts'
import { type ReadableMirror, readableFile } from './readable-mirror.ts'
import type { ReadingTask } from './task.ts'

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
