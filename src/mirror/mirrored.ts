import { differingPaths } from '../json/compare.ts'
import { parseExact } from '../json/exact.ts'
import { asJsonObject } from '../json/value.ts'
import type { ListedItem } from '../sync/items.ts'
import type { Job } from '../sync/types.ts'
import type { Connection } from './database.ts'
import { followRawRows, type RawRows } from './raw-rows.ts'
import { MOST_PATHS, type Suspect } from './suspects.ts'

/** What the mirror holds of a job, for those who hold something against it. */
export interface Mirrored {
  /** How an item and the mirror seem to be apart; null where they are not. */
  suspicion(entry: ListedItem, page: number): Suspect | null
  /** Whether the mirror does not know this item without a usable key. */
  isNewReject(entry: ListedItem): boolean
  /** The rows as they are declared at this moment; null where the collection has no tables. */
  rows(): RawRows | null
  /** Nothing of the list is there, and no walk of it ever began. */
  isNeverSynced(): boolean
}

export function createMirrored(connection: Connection, job: Job): Mirrored {
  const { organization, collection } = job
  const ignore = new Set(collection.ignore)
  const findReject = connection.prepare(
    'SELECT 1 FROM sync_rejects WHERE organization_id = ? AND collection = ? AND fingerprint = ?',
  )
  const findTrace = connection.prepare(`
    SELECT 1 FROM sync_walks WHERE organization_id = :id AND collection = :name
    UNION ALL
    SELECT 1 FROM sync_rejects WHERE organization_id = :id AND collection = :name
    LIMIT 1
  `)
  const rows = followRawRows(connection, job)

  function isNewReject(entry: ListedItem): boolean {
    return 'reject' in entry && findReject.get(organization.id, collection.name, entry.id) === undefined
  }

  return {
    rows,
    isNewReject,
    suspicion(entry, page) {
      const { item, id } = entry
      const missing: Suspect = { mark: id, kind: 'missing', page, json: item.text, paths: [], reject: null }
      if ('reject' in entry) return isNewReject(entry) ? { ...missing, reject: entry.reject } : null
      const text = rows()?.find(organization.id, entry.key.parts)
      if (text === undefined) return missing
      if (text === item.text) return null
      const paths = differingPaths(parseExact(text), asJsonObject(item.value), ignore, MOST_PATHS + 1)
      return paths.length === 0 ? null : { ...missing, kind: 'different', paths }
    },
    isNeverSynced: () =>
      findTrace.get({ id: organization.id, name: collection.name }) === undefined &&
      (rows()?.keysAfter(organization.id, null, 1) ?? []).length === 0,
  }
}
