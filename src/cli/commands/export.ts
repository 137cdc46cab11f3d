import fs from 'node:fs'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import { UsageError } from '../../errors.ts'
import type { Reader } from '../../mirror/reader.ts'
import { printableJson } from '../../text.ts'
import { type Globals, readConfig } from '../context.ts'
import { isNotMadeYet } from '../mirror-file.ts'
import { chunked, writeAll } from '../output.ts'
import { csvText } from '../rows.ts'
import type { Runtime } from '../runtime.ts'
import { selectOrganizations } from '../selection.ts'
import { assertMayReplace } from './export-target.ts'
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
  runtime.dieOnSignal()
  const config = readConfig(runtime, globals, 'leave')
  const target = options.output === undefined ? null : path.resolve(runtime.cwd, options.output)
  if (target !== null) assertMayReplace(target, config)
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
    if (target === null) await writeAll(runtime.stdout, pieces)
    else await writeFile(target, pieces)
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

async function writeFile(file: string, pieces: Iterable<string>): Promise<void> {
  try {
    if (isReplaceable(file)) await replaceFile(fs.existsSync(file) ? fs.realpathSync(file) : file, pieces)
    else await pipeline(chunked(pieces), fs.createWriteStream(file))
  } catch (error) {
    if (error instanceof Error && 'syscall' in error)
      throw new UsageError(`--output ${file} cannot be written: ${error.message}`)
    throw error
  }
}

/** A device or a pipe, such as /dev/stdout, is written to as it stands; a file moved over it would take its place. */
function isReplaceable(file: string): boolean {
  return fs.statSync(file, { throwIfNoEntry: false })?.isFile() ?? true
}

/** Written beside the file and then moved there: nobody ever finds half an export. */
async function replaceFile(file: string, pieces: Iterable<string>): Promise<void> {
  const unfinished = `${file}.unfinished`
  try {
    // Opened before anything can fail: a stream that is ended first would still make its file, after it was taken away.
    const fd = fs.openSync(unfinished, 'w')
    await pipeline(chunked(pieces), fs.createWriteStream(unfinished, { fd }))
    fs.renameSync(unfinished, file)
  } catch (error) {
    fs.rmSync(unfinished, { force: true })
    throw error
  }
}
