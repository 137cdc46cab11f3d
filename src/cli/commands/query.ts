import { assertReadingSql, openReader, type Reader } from '../../store/sqlite/read/reader.ts'
import { type Globals, readConfig } from '../context.ts'
import { isNotMadeYet, noMirror } from '../mirror-file.ts'
import { writeAll } from '../output.ts'
import { csvText, jsonText, tableText } from '../rows.ts'
import type { Runtime } from '../runtime.ts'

export interface QueryOptions {
  format: 'table' | 'json' | 'csv'
}

/** `query`: one statement that reads. */
export async function query(
  runtime: Runtime,
  globals: Globals,
  sql: string,
  { format }: QueryOptions,
): Promise<number> {
  const { stdout } = runtime
  // SQLite computes without letting anything else run, so a signal has to end the process as it is; nothing is written.
  runtime.dieOnSignal()
  const { database } = readConfig(runtime, globals, 'leave')
  if (isNotMadeYet(database)) assertReadingSql(sql)
  const reader = openMirror(database)
  try {
    const rows = reader.query(sql)
    const texts = {
      table: () => tableText(rows),
      json: () => jsonText(rows, stdout.isTTY === true),
      csv: () => csvText(rows, stdout.isTTY === true),
    }
    await writeAll(stdout, texts[format]())
    return 0
  } finally {
    reader.close()
  }
}

/** The mirror, for commands that are nothing without one. */
export function openMirror(file: string): Reader {
  const reader = openReader(file)
  if (!reader) throw noMirror(file)
  return reader
}
