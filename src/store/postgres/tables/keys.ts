import type { KeyPart } from '../../../sync/items.ts'
import type { KeyType, TableShape } from '../../columns/catalog.ts'
import { quoted } from '../sql.ts'
import { SQL_TYPES } from './shape.ts'

type Keys = Pick<TableShape, 'keyColumns' | 'keyTypes'>

/** An SQL expression for the id of a row, as `packTexts` writes it. */
export function idOfRow({ keyColumns }: Pick<Keys, 'keyColumns'>, row: string): string {
  const texts = keyColumns.map((name) => `${row}.${quoted(name)}::text`)
  if (texts.length === 1) return texts.join()
  return `'[' || ${texts.map((text) => `to_json(${text})::text`).join(` || ',' || `)} || ']'`
}

/** An SQL condition: the row has this id, which came from a row of these columns. */
export function hasId({ keyColumns, keyTypes }: Keys, row: string, id: string): string {
  return keyColumns
    .map((name, index) => {
      const part = keyColumns.length === 1 ? id : `(${id}::json ->> ${index})`
      return `${row}.${quoted(name)} = ${part}::${SQL_TYPES[keyTypes[index] ?? 'TEXT']}`
    })
    .join(' AND ')
}

/** Names for the parts of a key in a list of parameters: `k0`, `k1`. */
export function partNames({ keyColumns }: Pick<Keys, 'keyColumns'>): string[] {
  return keyColumns.map((_, index) => `k${index}`)
}

/** An SQL condition: the row has the key of this line of a list of parameters. */
export function hasKey({ keyColumns, keyTypes }: Keys, row: string, line: string): string {
  return keyColumns
    .map(
      (name, index) => `${row}.${quoted(name)} = ${line}.k${index}::${SQL_TYPES[keyTypes[index] ?? 'TEXT']}`,
    )
    .join(' AND ')
}

const LARGEST = 2n ** 63n

/** Whether these columns can hold the key exactly: `007` is not 7. */
export function fitsColumns(key: readonly Pick<KeyPart, 'text'>[], types: readonly KeyType[]): boolean {
  return key.every(({ text }, index) => types[index] === 'TEXT' || isWhole(text))
}

function isWhole(text: string): boolean {
  if (!/^-?\d{1,19}$/.test(text)) return false
  const number = BigInt(text)
  return String(number) === text && number >= -LARGEST && number < LARGEST
}

/** The parts of keys, a list for each column. */
export function columnsOfKeys(
  keys: readonly (readonly Pick<KeyPart, 'text'>[])[],
  { keyColumns }: Pick<Keys, 'keyColumns'>,
): string[][] {
  return keyColumns.map((_, index) => keys.map((key) => key[index]?.text ?? ''))
}
