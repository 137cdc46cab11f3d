import { assertReadingSql, createReader, type Parameters } from '../../store/sqlite/read/reader.ts'
import { assertExport, type QueryWork, type ReadingTask, writeResult } from '../reading.ts'
import type { Runtime } from '../runtime.ts'
import { isNotMadeYet, openMirror } from './mirror.ts'

/** Does the task on a mirror in a file. Throws UsageError and MirrorError. */
export async function readFile(runtime: Pick<Runtime, 'stdout'>, task: ReadingTask): Promise<void> {
  const { database, config, work } = task
  if (isNotMadeYet(database)) {
    // Usage is checked before the mirror is looked at.
    if (work.kind === 'query') assertReadingSql(work.sql, valuesOf(work.parameters))
    else if (config) assertExport(work, config)
  }
  const connection = openMirror(database, config === null)
  const reader = createReader(connection, database)
  try {
    const query = (sql: string, parameters: QueryWork['parameters']) => {
      const { rows, ...head } = reader.query(sql, valuesOf(parameters))
      // All rows are one batch, which is read while it is written.
      return { ...head, batches: [rows] }
    }
    await writeResult(runtime, { ...reader, query }, task)
  } finally {
    connection.close()
  }
}

const [LEAST, MOST] = [-(2n ** 63n), 2n ** 63n - 1n]

function valuesOf(parameters: QueryWork['parameters']): Parameters {
  return new Map(parameters.map(([name, value]) => [name, parameterValue(value)]))
}

/**
 * A text that SQLite itself would write for a number is that number, and compared with a TEXT column it is the same text again;
 * anything else (007, 1.10) is a text.
 */
function parameterValue(text: string): string | number | bigint {
  if (/^(?:0|-?[1-9]\d*)$/.test(text)) {
    const whole = BigInt(text)
    return whole >= LEAST && whole <= MOST ? whole : text
  }
  const isPlain = /^-?(?:0|[1-9]\d{0,9})\.\d{0,4}[1-9]$/.test(text)
  return isPlain ? Number(text) : text
}
