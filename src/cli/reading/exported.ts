import { UsageError } from '../../errors.ts'
import { tableName } from '../../store/columns/catalog.ts'
import { collectionNames, listedOrganizations, mayHold, OF_EVERY_MIRROR } from '../../store/core/reading.ts'
import { quoted } from '../../store/core/sql.ts'
import { printable } from '../../text.ts'
import type { ExportWork, ReadableMirror, ReadRows } from './read.ts'

/** The rows of a table or view. `areItems`: the one column is the items of a collection, as JSON. Throws UsageError. */
export async function exportedRows(
  mirror: ReadableMirror,
  { name, format, organizations }: ExportWork,
  configured: readonly string[],
): Promise<ReadRows & { areItems: boolean }> {
  const collections = await mirror.ask(collectionNames())
  const columns = await columnsOf(mirror, name, collections, configured)
  const owner = ['_organization_id', 'organization_id', ...(name === 'organizations' ? ['id'] : [])].find(
    (column) => columns.has(column),
  )
  if (organizations && owner === undefined)
    throw new UsageError(`--org: the rows of ${name} belong to no organization`)
  const ids = organizations && [
    ...organizations.ids,
    ...idsOf(await mirror.ask(listedOrganizations()), organizations.typed),
  ]
  const where = ids && owner ? ` WHERE ${quoted(owner)} IN (${ids.map(literal).join(', ')})` : ''
  const areItems = format === 'ndjson' && collections.includes(name)
  const [list, from] = areItems
    ? [quoted('_json'), tableName(name, 'raw')]
    : [[...columns.keys()].map(quoted).join(', '), name]
  const rows = await mirror.query(`SELECT ${list} FROM ${quoted(from)}${where}`, [])
  return { ...rows, types: [...columns.values()], areItems }
}

/** The columns with their types. Throws UsageError if there is no such table or view. */
async function columnsOf(
  { ask, dialect }: ReadableMirror,
  name: string,
  collections: readonly string[],
  configured: readonly string[],
): Promise<Map<string, string>> {
  const found = await ask(dialect.relationNamed([name]))
  if (found?.name === name && WITH_ROWS.includes(found.kind)) {
    const types = await ask(dialect.columnTypes(name))
    const shown = OF_EVERY_MIRROR[name] ?? null
    return shown === null ? types : new Map([...types].filter(([column]) => shown.includes(column)))
  }
  if (configured.includes(name) && !collections.includes(name))
    throw new UsageError(`nothing of ${name} was synced yet; "admin-mirror sync" does it`)
  const names = await ask(dialect.relationNames())
  throw unknown(
    name,
    names.filter((known) => mayHold(collections, known)),
  )
}

/** Unlike an index or a sequence, which may have such a name, too. */
const WITH_ROWS = ['table', 'view', 'materialized view']

/** Before there is a mirror. Throws UsageError for a name that none with these collections can have. */
export function assertName(name: string, configured: readonly string[]): void {
  if (!mayHold(configured, name)) throw unknown(name, [...configured, ...Object.keys(OF_EVERY_MIRROR)])
}

function unknown(name: string, names: readonly string[]): UsageError {
  return new UsageError(
    `there is no table or view ${printable(name)}; there are: ${printable(names.join(', '), 1000)}`,
  )
}

/** The ids of organizations that are named by name or UUID. One that left the configuration may have the name of another. */
function idsOf(known: readonly { id: string; name: string }[], names: readonly string[]): readonly string[] {
  return names.flatMap((name) => {
    const found = known.filter((one) => one.id === name.toLowerCase() || one.name === name)
    if (found.length > 0) return found.map(({ id }) => id)
    const all = known.map((one) => one.name).join(', ')
    throw new UsageError(
      `--org ${printable(name)}: the mirror has no organization of this name or UUID (it has: ${printable(all, 1000)})`,
    )
  })
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}
