import type { Config } from '../../config/config.ts'
import { UsageError } from '../../errors.ts'
import { tableName } from '../../store/columns/catalog.ts'
import {
  collectionNames,
  isForPeople,
  listedOrganizations,
  mayHold,
  OF_EVERY_MIRROR,
} from '../../store/core/query.ts'
import { literal, quoted } from '../../store/core/sql.ts'
import { type DatabaseOption, readPlace } from '../place.ts'
import { type OutputFormat, type Reader, writeRows } from '../reading.ts'
import type { Invocation } from '../runtime.ts'
import { type Named, organizationsNamed } from '../selection.ts'

interface Options extends DatabaseOption {
  format: OutputFormat
  org: string[]
}

/** `export`: the rows of a table or view; with `ndjson` a collection's items. */
export async function run(runtime: Invocation, typed: string, options: Options): Promise<number> {
  const place = await readPlace(runtime, options)
  const { config } = place
  const { format, org } = options
  return writeRows(runtime, place, format, async (mirror) => {
    if (!mirror.isThere() && config) assertNames(typed, org, config)
    const collections = await mirror.ask(collectionNames())
    // SQLite finds a table by its name in other capitals, too.
    const known = [...collections, ...OF_EVERY_MIRROR]
    const name = known.find((one) => one.toLowerCase() === typed.toLowerCase()) ?? typed
    const where = org.length === 0 ? '' : await ownedBy(name, org, config, mirror)
    if (format === 'ndjson' && collections.includes(name)) {
      const raw = quoted(tableName(name, 'raw'))
      return { ...(await mirror.query(`SELECT _json FROM ${raw}${where}`, [])), format: 'items' }
    }
    return rowsOf(name, where, mirror)
  })
}

/** Throws UsageError for names that a mirror of this configuration cannot have. */
function assertNames(name: string, org: readonly string[], config: Config): void {
  const collections = config.collections.map((collection) => collection.name)
  if (!mayHold(collections, name))
    throw new UsageError(
      `there is no table or view ${name}; there are: ${[...collections, ...OF_EVERY_MIRROR].join(', ')}`,
    )
  idsOf(org, config, [])
}

/** The rest of a statement that takes the rows of these organizations alone. */
async function ownedBy(
  name: string,
  org: readonly string[],
  config: Config | null,
  mirror: Reader,
): Promise<string> {
  const ids = idsOf(org, config, await mirror.ask(listedOrganizations()))
  const owner = OF_EVERY_MIRROR.includes(name) ? 'organization_id' : '_organization_id'
  return ` WHERE ${name === 'organizations' ? 'id' : owner} IN (${ids.map(literal).join(', ')})`
}

/** One that left the configuration may have the name of another, which goes before it. */
function idsOf(typed: readonly string[], config: Config | null, mirrored: readonly Named[]): string[] {
  const configured: readonly Named[] = config?.organizations ?? []
  return typed.flatMap((name) => {
    const found = organizationsNamed(name, [...configured, ...mirrored])
    const own = found.filter((one) => configured.includes(one))
    return (own.length > 0 ? own : found).map(({ id }) => id)
  })
}

async function rowsOf(name: string, where: string, mirror: Reader) {
  const all = await mirror.query(`SELECT * FROM ${quoted(name)} LIMIT 0`, [])
  // A server has one cursor.
  await Array.fromAsync(all.batches)
  const columns = all.columns.filter((column) => isForPeople(name, column))
  const rows = await mirror.query(`SELECT ${columns.map(quoted).join(', ')} FROM ${quoted(name)}${where}`, [])
  const known = mirror.typesOf?.(name)
  return known ? { ...rows, types: columns.map((column) => known.get(column) ?? '') } : rows
}
