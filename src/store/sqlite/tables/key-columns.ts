import type { KeyPart } from '../../../sync/items.ts'
import type { Job } from '../../../sync/types.ts'
import { type KeyType, keyColumnNames, keyPathsOf } from '../../columns/catalog.ts'
import { type Connection, quoted } from '../sql.ts'
import { tableName, typeOfColumn } from './declarations.ts'

/** The columns of a collection's key, in the order of its fields. */
export interface KeyColumns {
  names: readonly string[]
  types: readonly KeyType[]
}

/**
 * A collection's key columns as its raw table declares them now: one may become TEXT. Null without a table.
 */
export function readKeyColumns(connection: Connection, job: Pick<Job, 'collection'>): KeyColumns | null {
  const table = tableName(job.collection.name, 'raw')
  const names = keyColumnNames(keyPathsOf(job))
  const types = names.map((name) => typeOfColumn(connection, table, name) as KeyType | undefined)
  return types.every((type) => type !== undefined) ? { names, types } : null
}

/** An SQL expression for the id of a row, as `packTexts` writes it. */
export function idOfRow({ names }: Pick<KeyColumns, 'names'>, row: string): string {
  const texts = names.map((name) => `CAST(${row}.${quoted(name)} AS TEXT)`)
  return texts.length === 1 ? texts.join() : `json_array(${texts.join(', ')})`
}

/**
 * An SQL condition: the row has this id. Only for ids that fit the columns, like those that came from a row.
 */
export function hasId({ names, types }: KeyColumns, row: string, id: string): string {
  const part = (index: number) => (names.length === 1 ? id : `json_extract(${id}, '$[${index}]')`)
  return names
    .map((name, index) => `${row}.${quoted(name)} = CAST(${part(index)} AS ${types[index]})`)
    .join(' AND ')
}

const LARGEST = 2n ** 63n

/**
 * A key's values as its columns hold them; null if an INTEGER column cannot hold one exactly: `007` is not 7.
 */
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
