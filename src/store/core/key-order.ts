import { packTexts } from '../../json/value.ts'
import type { Job } from '../../sync/types.ts'
import type { KeyType } from '../columns/catalog.ts'
import { all, type Keys, quoted, type Rule, SQL_TYPES } from './sql.ts'

// Rows in the order of their key, a batch at a time: as `verify` reads ids.

/** The most ids that one call of `liveKeys` returns. */
const KEYS_BATCH = 4000

/** Where a batch of rows ended: its last key, as texts. */
interface Position {
  types: readonly KeyType[]
  last: readonly string[]
}

/** For SELECT: the key of a row as texts, `k0` and so on. */
function keyTexts(keyColumns: readonly string[]): string {
  return keyColumns.map((name, index) => `CAST(${quoted(name)} AS TEXT) AS k${index}`).join(', ')
}

/** The key that `keyTexts` selected. */
function keyIn(row: Readonly<Record<string, string>>, { keyColumns }: Keys): string[] {
  return keyColumns.map((_, index) => row[`k${index}`] ?? '')
}

/**
 * For WHERE: the rows after a position, in the order of the key. If a sync of another organization has made a key column TEXT since, the order is
 * another one, so all rows are read again.
 */
function rowsAfter({ keyColumns, keyTypes }: Keys, from: Position | null) {
  const order = keyColumns.map(quoted).join(', ')
  if (!from || String(from.types) !== String(keyTypes)) return { sql: 'true', order, values: {} }
  const types = keyTypes.map((type) => SQL_TYPES[type])
  const values = Object.fromEntries(from.last.map((text, index) => [`p${index}`, text]))
  return {
    sql: `(${order}) > (${types.map((type, index) => `:p${index}::${type}`).join(', ')})`,
    order,
    values,
  }
}

/** See `Store.liveKeys`. */
export function* liveKeys(
  keys: Keys,
  job: Job,
  from: string | null,
): Rule<{ ids: string[]; next: string | null }> {
  const after = rowsAfter(keys, from === null ? null : (JSON.parse(from) as Position))
  const rows = yield* all<Record<string, string>>(
    `
      SELECT ${keyTexts(keys.keyColumns)}
      FROM ${quoted(job.collection.name)}
      WHERE "_organization_id" = :organization AND ${after.sql}
      ORDER BY ${after.order}
      LIMIT ${KEYS_BATCH}
    `,
    { organization: job.organization.id, ...after.values },
  )
  const texts = rows.map((row) => keyIn(row, keys))
  const last = texts.length === KEYS_BATCH ? texts.at(-1) : undefined
  const next: Position | null = last ? { types: keys.keyTypes, last } : null
  return { ids: texts.map(packTexts), next: next && JSON.stringify(next) }
}
