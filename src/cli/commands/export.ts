import path from 'node:path'
import { UsageError } from '../../errors.ts'
import type { Rows } from '../../store/sqlite/read/reader.ts'
import { printableJson } from '../../text.ts'
import { type Globals, readConfig } from '../config-file.ts'
import { exitCodeOfStop } from '../exit-code.ts'
import { isNotMadeYet, readMirror } from '../mirror-file.ts'
import { assertMayReplace, type OutputFile, outputFile, writeOutput } from '../output/output-file.ts'
import { csvText } from '../output/rows.ts'
import { writeAll } from '../output/write-all.ts'
import type { Runtime } from '../runtime.ts'
import { selectOrganizations } from '../selection.ts'

interface ExportOptions {
  format: 'csv' | 'ndjson'
  org: string[]
  output?: string
}

/** `export`: the live rows of a collection; with `ndjson` the items as they were sent. */
export async function run(
  runtime: Runtime,
  globals: Globals,
  collection: string,
  options: ExportOptions,
): Promise<number> {
  const config = readConfig(runtime, globals, 'leave')
  const target =
    options.output === undefined ? null : outputFile('--output', path.resolve(runtime.cwd, options.output))
  if (target) assertMayReplace(target, config)
  // Only an unfinished file must be deleted after a signal.
  if (!target?.isRegular) runtime.dieOnSignal()
  const organizationIds =
    options.org.length > 0 ? selectOrganizations(config, options.org).map(({ id }) => id) : null
  const isConfigured = config.collections.some(({ name }) => name === collection)
  const safe = target === null && runtime.stdout.isTTY === true
  const write = async (pieces: Iterable<string>): Promise<number> => {
    if (!target) await writeAll(runtime.stdout, pieces)
    else if (!(await isWritten(target, pieces, runtime))) return exitCodeOfStop(runtime.signal)
    return 0
  }
  if (config.postgres) {
    const { exportPostgres } = await import('../postgres/read.ts')
    const items = options.format === 'ndjson'
    const rows = await exportPostgres(config, runtime, { collection, organizationIds, items })
    if (!rows) throw unknownCollection(collection)
    return write(items ? oneLineEach(firstColumn(rows), safe) : csvText(rows, safe))
  }
  if (!isConfigured && isNotMadeYet(config.database)) throw unknownCollection(collection)
  const reader = readMirror(config.database)
  try {
    if (!reader.hasCollection(collection)) {
      if (!isConfigured) throw unknownCollection(collection)
      throw new UsageError(`nothing of ${collection} was synced yet; "admin-mirror sync" does it`)
    }
    const pieces =
      options.format === 'csv'
        ? csvText(reader.liveRows(collection, organizationIds), safe)
        : oneLineEach(reader.liveItems(collection, organizationIds), safe)
    return await write(pieces)
  } finally {
    reader.close()
  }
}

function unknownCollection(name: string): UsageError {
  return new UsageError(`there is no collection ${name}, neither in the configuration nor in the mirror`)
}

function* firstColumn({ rows }: Rows): Iterable<string> {
  for (const [value] of rows) yield String(value)
}

/** A line break in JSON is white space between values; in a string it is escaped. `safe`: for a terminal. */
function* oneLineEach(items: Iterable<string>, safe: boolean): Iterable<string> {
  for (const item of items) {
    const line = item.replace(/[\r\n]+/g, ' ')
    yield `${safe ? printableJson(line) : line}\n`
  }
}

/** Returns false if a signal came before the end; the file is then as it was. */
async function isWritten(
  target: OutputFile,
  pieces: Iterable<string>,
  { newToken, signal, stderr }: Runtime,
): Promise<boolean> {
  try {
    await writeOutput(target, pieces, newToken, signal)
    return true
  } catch (error) {
    if (!signal.aborted) throw error
    stderr.write(`stopped; ${target.shown} is as it was\n`)
    return false
  }
}
