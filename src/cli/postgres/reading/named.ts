import {
  collectionsOf,
  findListed,
  type Listed,
  listedNames,
  type Reading,
} from '../../../store/postgres/read/listed.ts'
import { notListed } from '../../reading/named.ts'

/** The table or view of this name. Throws UsageError if there is none. */
export async function findNamed(sql: Reading, name: string, configured: readonly string[]): Promise<Listed> {
  const listed = await findListed(sql, name)
  if (listed) return listed
  const collections = (await collectionsOf(sql)).map(({ collection }) => collection)
  throw notListed(name, { configured, collections, names: await listedNames(sql) })
}
