import { assertReadingSql, type Rows } from '../../store/sqlite/read/reader.ts'
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
  const config = readConfig(runtime, globals, 'leave')
  const { database } = config
  if (config.postgres) {
    const { queryPostgres } = await import('../postgres/read.ts')
    await write(await queryPostgres(config, runtime, sql), format, stdout)
    return 0
  }
  if (isNotMadeYet(database)) assertReadingSql(sql)
  const reader = readMirror(database)
  try {
    await write(reader.query(sql), format, stdout)
    return 0
  } finally {
    reader.close()
  }
}

async function write(rows: Rows, format: QueryOptions['format'], stdout: Runtime['stdout']): Promise<void> {
  const safe = stdout.isTTY === true
  const texts = {
    table: () => tableText(rows),
    json: () => jsonText(rows, safe),
    csv: () => csvText(rows, safe),
  }
  await writeAll(stdout, texts[format]())
}
