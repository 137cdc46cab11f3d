import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { UsageError } from '../errors.ts'
import type { Reader } from '../mirror/reader.ts'
import { readConfig } from './context.ts'
import { writeAll } from './output.ts'
import type { Globals } from './program.ts'
import { openMirror } from './query.ts'
import { csvText } from './rows.ts'
import type { Runtime } from './runtime.ts'
import { selectOrganizations } from './selection.ts'

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
  const organizationIds =
    options.org.length > 0 ? selectOrganizations(config, options.org).map(({ id }) => id) : null
  const isConfigured = config.collections.some(({ name }) => name === collection)
  const reader = openMirror(config.database)
  try {
    if (!reader.hasCollection(collection)) {
      if (!isConfigured)
        throw new UsageError(
          `there is no collection ${collection}, neither in the configuration nor in the mirror`,
        )
      throw new UsageError(`nothing of ${collection} was synced yet; "admin-mirror sync" does it`)
    }
    const safe = options.output === undefined && runtime.stdout.isTTY === true
    const pieces = pieceSource(reader, collection, organizationIds, options.format, safe)
    if (options.output === undefined) await writeAll(runtime.stdout, pieces)
    else await writeFile(path.resolve(runtime.cwd, options.output), pieces)
    return 0
  } finally {
    reader.close()
  }
}

function pieceSource(
  reader: Reader,
  collection: string,
  organizationIds: string[] | null,
  format: 'csv' | 'ndjson',
  safe: boolean,
): Iterable<string> {
  if (format === 'csv') return csvText(reader.liveRows(collection, organizationIds), safe)
  return oneLineEach(reader.liveItems(collection, organizationIds))
}

/** A line break in JSON can only be white space between values, since strings hold it escaped. */
function* oneLineEach(items: Iterable<string>): Iterable<string> {
  for (const item of items) yield `${item.replace(/[\r\n]+/g, ' ')}\n`
}

/** Written beside the file and then moved there: nobody ever finds half an export. */
async function writeFile(file: string, pieces: Iterable<string>): Promise<void> {
  const unfinished = `${file}.unfinished`
  try {
    const stream = fs.createWriteStream(unfinished)
    await once(stream, 'open')
    await writeAll(stream, pieces)
    stream.end()
    await once(stream, 'finish')
    fs.renameSync(unfinished, file)
  } catch (error) {
    fs.rmSync(unfinished, { force: true })
    if (error instanceof Error && 'syscall' in error)
      throw new UsageError(`--output ${file} cannot be written: ${error.message}`)
    throw error
  }
}
