import { UsageError } from '../../errors.ts'
import { belongsTo } from '../../store/columns/catalog.ts'
import { type Listed, listedCollections, listedNames, OWN_TIME } from '../../store/core/reading.ts'
import type { Selection } from '../../store/core/selection.ts'
import { OF_THE_MIRROR } from '../../store/help-texts.ts'
import { printable } from '../../text.ts'
import type { ExportWork, ReadableMirror } from './read.ts'

/** Throws UsageError for a name that no table or view of the configured collections can have. */
export function assertNameOf({ name }: ExportWork, configured: readonly string[]): void {
  if (isOfMirror(name)) return
  if (!configured.some((collection) => belongsTo(collection, name))) throw unknown(name, [])
}

/** The table or view of this name. Throws UsageError if there is none. */
export async function findNamed(
  mirror: ReadableMirror,
  name: string,
  configured: readonly string[],
): Promise<Listed> {
  const listed = await mirror.find(name)
  if (listed) return listed
  const collections = await mirror.ask(listedCollections(mirror.dialect))
  if (configured.includes(name) && !collections.some(({ collection }) => collection === name))
    throw new UsageError(`nothing of ${name} was synced yet; "admin-mirror sync" does it`)
  throw unknown(name, await mirror.ask(listedNames(mirror.dialect)))
}

function unknown(name: string, known: readonly string[]): UsageError {
  const names = known.length > 0 ? `; there are: ${printable(known.join(', '), 1000)}` : ''
  return new UsageError(
    `there is no collection ${printable(name)}, neither in the configuration nor in the mirror, and no view of one with that name${names}`,
  )
}

/** Whether it is a table or view that every mirror has, of the program's own: `organizations`, `sync_runs`. */
export function isOfMirror(name: string): boolean {
  return Object.hasOwn(OF_THE_MIRROR, name)
}

const TIME_COLUMNS = new Set(['held_since', 'as_of', 'fresh_as_of'])
const WHOLE_COLUMNS = new Set([
  'configured',
  'rows',
  'removals_held',
  'walk_id',
  'first_page',
  'next_page',
  'page',
  'pages',
  'passes',
  'total',
  'rows_seen',
  'rows_added',
  'rows_changed',
  'rows_removed',
  'requests',
  'retries',
  'rate_limit_hits',
  'rate_limit_wait_ms',
  'filled',
  'misfits',
])

/**
 * The documented columns of such a table, and the SQL that selects them: one for both stores, so that both write the same. Other
 * columns are internal. Throws UsageError for a selection that the table cannot answer.
 */
export function mirrorTable(
  name: string,
  { organizationIds, since, sinceSeq }: Selection,
): { sql: string; types: string[] } {
  if (since !== null) throw new UsageError(`--since: ${name} has no time of change`)
  if (sinceSeq != null) throw new UsageError(`--since-seq: ${name} has no events`)
  const names = Object.keys(OF_THE_MIRROR[name]?.[1] ?? {})
  const owner = name === 'organizations' ? 'id' : 'organization_id'
  if (organizationIds && !names.includes(owner))
    throw new UsageError(`--org: the rows of ${name} belong to no organization`)
  const ids = organizationIds?.map((id) => `'${id.replaceAll("'", "''")}'`)
  const where = ids ? ` WHERE "${owner}" IN (${ids.join(', ')})` : ''
  const types = names.map((column) => typeOfOwn(name, column))
  const expressions = names.map((column, index) => expression(column, types[index] ?? ''))
  return { sql: `SELECT ${expressions.join(', ')} FROM "${name}"${where} ORDER BY 1, 2`, types }
}

function typeOfOwn(table: string, column: string): string {
  if (TIME_COLUMNS.has(column) || column.endsWith('_at')) return OWN_TIME
  return WHOLE_COLUMNS.has(column) || (column === 'id' && table !== 'organizations') ? 'INTEGER' : 'TEXT'
}

/** A sum is `numeric` on a server. */
function expression(column: string, type: string): string {
  if (type === 'INTEGER') return `CAST("${column}" AS bigint) AS "${column}"`
  return type === 'REAL' ? `CAST("${column}" AS double precision) AS "${column}"` : `"${column}"`
}
