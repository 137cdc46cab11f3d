import { createHash } from 'node:crypto'
import { packTexts } from '../../../json/value.ts'
import type { ListedItem, StoredItem } from '../../../sync/items.ts'
import type { Job } from '../../../sync/types.ts'
import type { TableShape } from '../../columns/catalog.ts'
import type { Server } from '../server/server.ts'
import { quoted, storable } from '../sql.ts'
import type { Collections, OpenCollection } from './collection.ts'
import { columnsOfKeys, fitsColumns, hasKey, partNames } from './keys.ts'
import { SQL_TYPES, tableName } from './shape.ts'

/** The most ids that one call of `liveKeys` returns. */
const KEYS_BATCH = 4000

/** Compares each item with its row, in one statement. Texts that differ come back; equal ones are told by their hash. */
export function lookUp(
  server: Server,
  collections: Collections,
  job: Job,
  items: readonly ListedItem[],
): Promise<StoredItem[]> {
  return collections.retrying(job, async ({ shape }) => {
    const states: StoredItem[] = items.map(() => ({ state: 'absent' }))
    const keyed = items.flatMap((listed, at) =>
      'key' in listed && fitsColumns(listed.key.parts, shape.keyTypes)
        ? [{ at, parts: listed.key.parts, text: listed.item.text }]
        : [],
    )
    const rejects = items.flatMap((listed, at) => ('reject' in listed ? [{ at, id: listed.id }] : []))
    if (keyed.length + rejects.length === 0) return states
    const rows = await server.rows<StoredLine>(lookupSql(shape), [
      job.organization.id,
      job.collection.name,
      rejects.map(({ at }) => at),
      rejects.map(({ id }) => storable(id)),
      keyed.map(({ at }) => at),
      keyed.map(({ text }) => hashOf(text)),
      ...columnsOfKeys(
        keyed.map(({ parts }) => parts),
        shape,
      ),
    ])
    for (const line of rows) states[line.at] = stateOf(line)
    return states
  })
}

/** `text`: null if it is the same. */
interface StoredLine {
  at: number
  text: string | null
  firstAt: number | null
  changedAt: number | null
}

function stateOf({ text, firstAt, changedAt }: StoredLine): StoredItem {
  const times = firstAt === null || changedAt === null ? null : { firstAt, changedAt }
  return text === null || times === null ? { state: 'same', times } : { state: 'different', text, times }
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function lookupSql(shape: TableShape): string {
  const parts = partNames(shape)
  return `
    SELECT rejected.at, NULL AS text, NULL AS "firstAt", NULL AS "changedAt"
    FROM unnest($3::int[], $4::text[]) AS rejected (at, id)
    JOIN sync_rejects AS stored ON stored.organization_id = $1 AND stored.collection = $2 AND stored.fingerprint = rejected.id
    UNION ALL
    SELECT
      wanted.at,
      CASE WHEN encode(sha256(convert_to(raw."_json", 'UTF8')), 'hex') = wanted.hash THEN NULL ELSE raw."_json" END,
      raw."_first_seen_at",
      raw."_changed_at"
    FROM unnest($5::int[], $6::text[], ${parts.map((_, index) => `$${index + 7}::text[]`).join(', ')})
      AS wanted (at, hash, ${parts.join(', ')})
    JOIN ${quoted(tableName(shape.name, 'raw'))} AS raw
      ON raw."_organization_id" = $1 AND ${hasKey(shape, 'raw', 'wanted')}
  `
}

/** See `Store.liveKeys`. */
export function readLiveKeys(
  server: Server,
  collections: Collections,
  job: Job,
  from: string | null,
): Promise<{ ids: string[]; next: string | null }> {
  return collections.retrying(job, async ({ shape }: OpenCollection) => {
    const last = position(from, shape)
    const names = shape.keyColumns.map(quoted)
    const after = shape.keyTypes.map((type, index) => `$${index + 2}::text::${SQL_TYPES[type]}`)
    const rows = await server.rows<Record<string, string>>(
      `
        SELECT ${names.map((name, index) => `${name}::text AS k${index}`).join(', ')}
        FROM ${quoted(tableName(shape.name, 'raw'))}
        WHERE "_organization_id" = $1 ${last ? `AND (${names.join(', ')}) > (${after.join(', ')})` : ''}
        ORDER BY ${names.join(', ')}
        LIMIT ${KEYS_BATCH}
      `,
      [job.organization.id, ...(last ?? [])],
    )
    const keys = rows.map((row) => partNames(shape).map((part) => String(row[part])))
    const end = keys.length === KEYS_BATCH ? keys.at(-1) : undefined
    const next = end ? JSON.stringify({ types: shape.keyTypes, last: end }) : null
    return { ids: keys.map(packTexts), next }
  })
}

/** Null, which starts again, if a sync of another organization made a key column TEXT: its order has changed. */
function position(from: string | null, { keyTypes }: TableShape): string[] | null {
  if (from === null) return null
  const { types, last } = JSON.parse(from) as { types: string[]; last: string[] }
  return String(types) === String(keyTypes) ? last : null
}
