import { UsageError } from '../../errors.ts'
import { OWN_TIME, type Selection } from '../../store/sqlite/read/selection.ts'
import { OF_THE_MIRROR } from '../../store/sqlite/tables/help-texts.ts'

/** Whether it is a table or view that every mirror has, of the program's own: `organizations`, `sync_runs`. */
export function isOfMirror(name: string): boolean {
  return Object.hasOwn(OF_THE_MIRROR, name)
}

const TIMES = new Set(['held_since', 'as_of', 'fresh_as_of'])
const FRACTIONS = new Set(['expected_missed'])
const WHOLE = new Set(
  'configured rows removals_held walk_id first_page pages rows_seen rows_added rows_changed rows_removed requests retries rate_limit_hits rate_limit_wait_ms next_page total passes filled misfits page'.split(
    ' ',
  ),
)

/**
 * The documented columns of such a table, and the SQL that selects them: of either store, so that both write the same. Other columns
 * are the program's own workings. Throws UsageError for a selection that the table cannot answer.
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
  const types = names.map((column) => typeOf(name, column))
  const expressions = names.map((column, index) => expression(column, types[index] ?? ''))
  return { sql: `SELECT ${expressions.join(', ')} FROM "${name}"${where} ORDER BY 1, 2`, types }
}

function typeOf(table: string, column: string): string {
  if (TIMES.has(column) || column.endsWith('_at')) return OWN_TIME
  if (FRACTIONS.has(column)) return 'REAL'
  return WHOLE.has(column) || (column === 'id' && table !== 'organizations') ? 'INTEGER' : 'TEXT'
}

/** A sum is `numeric` on a server. */
function expression(column: string, type: string): string {
  if (type === 'INTEGER') return `CAST("${column}" AS bigint) AS "${column}"`
  return type === 'REAL' ? `CAST("${column}" AS double precision) AS "${column}"` : `"${column}"`
}
