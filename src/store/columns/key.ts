import type { KeyPart } from '../../sync/key.ts'
import type { Job } from '../../sync/types.ts'

export type KeyType = 'INTEGER' | 'TEXT'

/** The paths of the key's fields, as their names from the item down. */
export function keyPathsOf({ collection }: Pick<Job, 'collection'>): string[][] {
  return collection.key.map((path) => path.split('.'))
}

/**
 * The types of the key columns after these values: INTEGER as long as every value was a JSON integer, then TEXT for good.
 * @param current Null where no value was seen yet.
 */
export function keyColumnTypes(current: readonly (KeyType | null)[], parts: readonly KeyPart[]): KeyType[] {
  return parts.map((part, index) => (part.integer && current[index] !== 'TEXT' ? 'INTEGER' : 'TEXT'))
}
