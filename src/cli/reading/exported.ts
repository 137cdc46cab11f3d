import type { Config } from '../../config/config.ts'
import { findOrganization } from '../../config/organizations.ts'
import { UsageError } from '../../errors.ts'
import { viewName } from '../../store/columns/catalog.ts'
import { collectionNames, listedOrganizations, mayHold, OF_EVERY_MIRROR } from '../../store/core/reading.ts'
import { literal, quoted } from '../../store/core/sql.ts'
import { printable } from '../../text.ts'
import type { ExportWork, ReadableMirror, ReadRows } from './read.ts'

/** The rows of a table or view. `areItems`: the one column is the items of a collection, as JSON. Throws UsageError. */
export async function exportedRows(
  mirror: ReadableMirror,
  { name, format, organizations }: ExportWork,
  config: Config | null,
): Promise<ReadRows & { areItems: boolean }> {
  const collections = await mirror.ask(collectionNames())
  const columns = await columnsOf(mirror, name, collections, config)
  const owner = ['_organization_id', 'organization_id', ...(name === 'organizations' ? ['id'] : [])].find(
    (column) => columns.has(column),
  )
  let where = ''
  if (organizations.length > 0) {
    if (owner === undefined) throw new UsageError(`--org: the rows of ${name} belong to no organization`)
    const ids = idsOf(organizations, config, await mirror.ask(listedOrganizations()))
    where = ` WHERE ${quoted(owner)} IN (${ids.map(literal).join(', ')})`
  }
  const areItems = format === 'ndjson' && collections.includes(name)
  const [list, from] = areItems
    ? [quoted('_json'), viewName(name, 'raw')]
    : [[...columns.keys()].map(quoted).join(', '), name]
  const rows = await mirror.query(`SELECT ${list} FROM ${quoted(from)}${where}`, [])
  return { ...rows, types: [...columns.values()], areItems }
}

/** The columns with their types. Throws UsageError if there is no such table or view. */
async function columnsOf(
  { ask, dialect }: ReadableMirror,
  name: string,
  collections: readonly string[],
  config: Config | null,
): Promise<Map<string, string>> {
  const found = await ask(dialect.relationNamed([name]))
  if (found?.name === name && WITH_ROWS.includes(found.kind)) {
    const types = await ask(dialect.columnTypes(name))
    const shown = OF_EVERY_MIRROR[name] ?? [...types.keys()].filter((column) => column !== ROW)
    return new Map([...types].filter(([column]) => shown.includes(column)))
  }
  if (namesOf(config).includes(name) && !collections.includes(name))
    throw new UsageError(`nothing of ${name} was synced yet; "admin-mirror sync" does it`)
  const names = await ask(dialect.relationNames())
  throw unknown(
    name,
    names.filter((known) => mayHold(collections, known)),
  )
}

/** The number by which the program finds the JSON of a row. */
const ROW = '_row'

/** Unlike an index or a sequence, which may have such a name, too. */
const WITH_ROWS = ['table', 'view', 'materialized view']

function namesOf(config: Config | null): string[] {
  return config?.collections.map(({ name }) => name) ?? []
}

/** Before there is a mirror of this configuration. Throws UsageError for names that it cannot have. */
export function assertExport({ name, organizations }: ExportWork, config: Config): void {
  const collections = namesOf(config)
  if (!mayHold(collections, name)) throw unknown(name, [...collections, ...Object.keys(OF_EVERY_MIRROR)])
  idsOf(organizations, config, [])
}

function unknown(name: string, names: readonly string[]): UsageError {
  return new UsageError(
    `there is no table or view ${printable(name)}; there are: ${printable(names.join(', '), 1000)}`,
  )
}

/** The ids of organizations that are named by name or UUID. One that left the configuration may have the name of another, which goes before it. */
function idsOf(
  named: readonly string[],
  config: Config | null,
  mirrored: readonly { id: string; name: string }[],
): string[] {
  return named.flatMap((name) => {
    const own = config && findOrganization(config, name)
    const found = own ? [own] : mirrored.filter((one) => one.id === name.toLowerCase() || one.name === name)
    if (found.length > 0) return found.map(({ id }) => id)
    const known = new Set([...(config?.organizations ?? []), ...mirrored].map((one) => one.name))
    throw new UsageError(
      `--org ${printable(name)}: neither the mirror nor a configuration has an organization of this name or UUID (known: ${printable([...known].join(', '), 1000)})`,
    )
  })
}
