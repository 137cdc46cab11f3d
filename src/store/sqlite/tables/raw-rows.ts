import type { KeyPart } from '../../../sync/key.ts'
import type { Job } from '../../../sync/types.ts'
import { keyColumnNames } from '../../columns/catalog.ts'
import { type KeyType, keyPathsOf } from '../../columns/key.ts'
import { type Connection, createSchemaVersion } from '../file/open.ts'
import { quoted } from '../sql.ts'
import { tableName } from './declarations.ts'

/** What a row's key columns hold: whole numbers are bigint. */
export type KeyValues = readonly (string | bigint)[]

/** The raw rows of one collection, for those who only read. */
export interface RawRows {
  keyTypes: readonly KeyType[]
  /** The item as it was sent; undefined where the mirror has none with this key. */
  find(organizationId: string, key: readonly Pick<KeyPart, 'text'>[]): string | undefined
  /** The keys of up to so many rows of an organization, in their order, behind this one. */
  keysAfter(organizationId: string, last: KeyValues | null, rows: number): KeyValues[]
}

/** The raw rows of a job's collection, as they are declared whenever somebody asks. */
export function followRawRows(connection: Connection, job: Job): () => RawRows | null {
  const versionNow = createSchemaVersion(connection)
  let known: RawRows | null = null
  let version = -1
  return () => {
    const now = versionNow()
    if (now !== version) known = openRawRows(connection, job.collection.name, keyPathsOf(job))
    version = now
    return known
  }
}

/** As the table is declared now; null where the collection has none. A key column may become TEXT at any time. */
export function openRawRows(
  connection: Connection,
  collection: string,
  keyPaths: readonly (readonly string[])[],
): RawRows | null {
  const table = tableName(collection, 'raw')
  const columns = keyColumnNames(keyPaths)
  const keyTypes = readKeyTypes(connection, table, columns)
  if (!keyTypes) return null
  const names = columns.map(quoted)
  const byKey = names.map((name) => `${name} = ?`).join(' AND ')
  const select = `SELECT ${names.join(', ')} FROM ${quoted(table)} WHERE "_organization_id" = ?`
  const inOrder = `ORDER BY ${names.join(', ')} LIMIT ?`
  const find = connection
    .prepare(`SELECT "_json" FROM ${quoted(table)} WHERE "_organization_id" = ? AND ${byKey}`)
    .pluck()
  const first = connection.prepare(`${select} ${inOrder}`)
  const next = connection.prepare(
    `${select} AND (${names.join(', ')}) > (${names.map(() => '?').join(', ')}) ${inOrder}`,
  )
  return {
    keyTypes,
    find(organizationId, key) {
      const values = boundKey(key, keyTypes)
      return values ? (find.get(organizationId, ...values) as string | undefined) : undefined
    },
    keysAfter: (organizationId, last, rows) =>
      (last ? next : first)
        .raw()
        .safeIntegers()
        .all(organizationId, ...(last ?? []), rows) as KeyValues[],
  }
}

function readKeyTypes(connection: Connection, table: string, columns: readonly string[]): KeyType[] | null {
  const typeOf = connection.prepare('SELECT type FROM pragma_table_info(?) WHERE name = ?').pluck()
  const types = columns.map((column) => typeOf.get(table, column) as KeyType | undefined)
  return types.every((type) => type !== undefined) ? types : null
}

const LARGEST = 2n ** 63n

/** A key's values as its columns hold them; null where no INTEGER can be this text: `007` is not 7. */
export function boundKey(
  key: readonly Pick<KeyPart, 'text'>[],
  types: readonly KeyType[],
): (string | bigint)[] | null {
  const values = key.map(({ text }, index) => (types[index] === 'TEXT' ? text : wholeNumber(text)))
  return values.every((value) => value !== null) ? values : null
}

function wholeNumber(text: string): bigint | null {
  if (!/^-?\d{1,19}$/.test(text)) return null
  const number = BigInt(text)
  return String(number) === text && number >= -LARGEST && number < LARGEST ? number : null
}
