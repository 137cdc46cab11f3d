import path from 'node:path'
import { UsageError } from '../../errors.ts'
import type { Reader } from '../../store/sqlite/read/reader.ts'
import { printableJson } from '../../text.ts'
import { type Globals, readConfig } from '../context.ts'
import { exitCodeOfStop } from '../exit-code.ts'
import { assertMayReplace } from '../kept-files.ts'
import { isNotMadeYet } from '../mirror-file.ts'
import { writeAll } from '../output.ts'
import { type OutputFile, outputFile, writeOutput } from '../output-file.ts'
import { csvText } from '../rows.ts'
import type { Runtime } from '../runtime.ts'
import { selectOrganizations } from '../selection.ts'
import { openMirror } from './query.ts'

export interface ExportOptions {
  format: 'csv' | 'ndjson'
  org: string[]
  output?: string
}

/** `export`: the live rows of a collection; `ndjson` gives the items as they were sent. */
export async function exportRows(
  runtime: Runtime,
  globals: Globals,
  collection: string,
  options: ExportOptions,
): Promise<number> {
  const config = readConfig(runtime, globals, 'leave')
  const target =
    options.output === undefined ? null : outputFile('--output', path.resolve(runtime.cwd, options.output))
  if (target) assertMayReplace(target, config)
  // Only where a file is half written is there something to clear away.
  if (!target?.isRegular) runtime.dieOnSignal()
  const organizationIds =
    options.org.length > 0 ? selectOrganizations(config, options.org).map(({ id }) => id) : null
  const isConfigured = config.collections.some(({ name }) => name === collection)
  if (!isConfigured && isNotMadeYet(config.database)) throw unknownCollection(collection)
  const reader = openMirror(config.database)
  try {
    if (!reader.hasCollection(collection)) {
      if (!isConfigured) throw unknownCollection(collection)
      throw new UsageError(`nothing of ${collection} was synced yet; "admin-mirror sync" does it`)
    }
    const safe = target === null && runtime.stdout.isTTY === true
    const pieces = pieceSource(reader, collection, organizationIds, options.format, safe)
    if (!target) await writeAll(runtime.stdout, pieces)
    else if (!(await isWritten(target, pieces, runtime))) return exitCodeOfStop(runtime.signal)
    return 0
  } finally {
    reader.close()
  }
}

function unknownCollection(name: string): UsageError {
  return new UsageError(`there is no collection ${name}, neither in the configuration nor in the mirror`)
}

function pieceSource(
  reader: Reader,
  collection: string,
  organizationIds: string[] | null,
  format: 'csv' | 'ndjson',
  safe: boolean,
): Iterable<string> {
  if (format === 'csv') return csvText(reader.liveRows(collection, organizationIds), safe)
  return oneLineEach(reader.liveItems(collection, organizationIds), safe)
}

/** A line break in JSON can only be white space between values, since strings hold it escaped. `safe`: for a terminal. */
function* oneLineEach(items: Iterable<string>, safe: boolean): Iterable<string> {
  for (const item of items) {
    const line = item.replace(/[\r\n]+/g, ' ')
    yield `${safe ? printableJson(line) : line}\n`
  }
}

/** False where a signal came before the end: the file is then as it was. */
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
