import type { ListedItem, StoredItem } from '../../sync/items.ts'
import type { Job } from '../../sync/types.ts'
import { keyValues } from '../columns/catalog.ts'
import { namesOf, OF_JOB } from './jobs.ts'
import { tableName } from './names.ts'
import { all, type Dialect, type Keys, msOf, one, quoted, type Rule, type StoredTime } from './sql.ts'

// What is stored of the items of a page.

interface StoredRow {
  id: string
  text: string
  firstAt: StoredTime
  changedAt: StoredTime
}

/** Compares each item with its row, or its reject if it has no usable key. `keys`: null without tables. */
export function* lookUp(
  dialect: Dialect,
  keys: Keys | null,
  job: Job,
  items: readonly ListedItem[],
): Rule<StoredItem[]> {
  // An item has no row if the key columns cannot hold its key exactly: 007 is not 7.
  const ids = items.flatMap((listed) =>
    keys && 'key' in listed && keyValues(listed.key.parts, keys.keyTypes) ? [listed.id] : [],
  )
  const rows =
    !keys || ids.length === 0
      ? []
      : yield* all<StoredRow>(rowsSql(dialect, keys, job), { ...namesOf(job), ids: JSON.stringify(ids) })
  const stored = new Map(rows.map((row) => [row.id, row]))
  const states: StoredItem[] = []
  for (const listed of items)
    states.push(
      'reject' in listed
        ? yield* rejectOf(job, listed.id)
        : comparedItem(listed.item.text, stored.get(listed.id)),
    )
  return states
}

function rowsSql(dialect: Dialect, keys: Keys, { collection }: Job): string {
  return `
    SELECT wanted.value AS id, raw."_json" AS text, raw."_first_seen_at" AS "firstAt", raw."_changed_at" AS "changedAt"
    FROM ${dialect.each(':ids::text', 'wanted')}
    ${dialect.join} ${quoted(tableName(collection.name, 'raw'))} AS raw
      ON raw."_organization_id" = :organization::text AND ${dialect.hasId(keys, 'raw', 'wanted.value')}
  `
}

function comparedItem(text: string, row: StoredRow | undefined): StoredItem {
  if (!row) return { state: 'absent' }
  const times = { firstAt: msOf(row.firstAt), changedAt: msOf(row.changedAt) }
  return row.text === text ? { state: 'same', times } : { state: 'different', text: row.text, times }
}

function* rejectOf(job: Job, id: string): Rule<StoredItem> {
  const known = yield* one(`SELECT 1 FROM sync_rejects WHERE ${OF_JOB} AND fingerprint = :id`, {
    ...namesOf(job),
    id,
  })
  return known === null ? { state: 'absent' } : { state: 'same', times: null }
}
