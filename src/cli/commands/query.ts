import { assertReadingSql } from '../../store/sqlite/read/reader.ts'
import { type Globals, readConfig } from '../config-file.ts'
import { isNotMadeYet, readMirror } from '../mirror-file.ts'
import { csvText, jsonText, tableText } from '../output/rows.ts'
import { writeAll } from '../output/write-all.ts'
import type { Runtime } from '../runtime.ts'

interface QueryOptions {
  format: 'table' | 'json' | 'csv'
}

/** `query`: one reading statement. */
export async function run(
  runtime: Runtime,
  globals: Globals,
  sql: string,
  { format }: QueryOptions,
): Promise<number> {
  const { stdout } = runtime
  // SQLite blocks the event loop, so a signal must end the process at once. Nothing is written.
  runtime.dieOnSignal()
  const { database } = readConfig(runtime, globals, 'leave')
  if (isNotMadeYet(database)) assertReadingSql(sql)
  const reader = readMirror(database)
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
