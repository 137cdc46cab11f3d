import type { KeyPart } from '../../../sync/items.ts'
import type { KeyType } from '../../columns/catalog.ts'
import type { Keys } from '../../core/sql.ts'
import { quoted } from '../sql.ts'
import { SQL_TYPES } from './shape.ts'

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
