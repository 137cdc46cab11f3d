import type { Upsert } from '../../../sync/store.ts'
import type { Job } from '../../../sync/types.ts'
import type { TableShape } from '../../columns/catalog.ts'
import { sqlitePath } from '../../columns/path.ts'
import type { TypedRow } from '../../columns/row.ts'
import { takeSeq } from '../../core/seq.ts'
import { timeOf } from '../../core/sql.ts'
import { runRule } from '../driver.ts'
import { quoted, type Sql, storable, storableJson } from '../sql.ts'
import { columnsOfKeys, hasKey, partNames } from './keys.ts'
import { SQL_TYPES, tableName } from './shape.ts'

/** Writes the new and changed rows of a page, and the versions that they replace. `rows`: their typed rows. */
export async function writeRows(
  sql: Sql,
  shape: TableShape,
  {
    job,
    upserts,
    rows,
    at: time,
  }: { job: Job; upserts: readonly Upsert[]; rows: readonly TypedRow[]; at: number },
): Promise<void> {
  if (upserts.length === 0) return
  const at = timeOf(time)
  await sql.count(writeSql(shape), [
    job.organization.id,
    at,
    await runRule(sql, takeSeq(job.collection.name, at)),
    job.collection.history !== false,
    typedRowsText(shape, upserts, rows),
    upserts.map(({ text }) => storable(text)),
    upserts.map(({ change }) => change === 'added'),
    upserts.map(({ fields = [] }) => JSON.stringify(fields.map(sqlitePath).map(storable))),
    ...columnsOfKeys(
      upserts.map(({ key }) => key.parts),
      shape,
    ),
  ])
}

/** All parts see the rows as they were before. */
function writeSql(shape: TableShape): string {
  const raw = quoted(tableName(shape.name, 'raw'))
  const history = quoted(tableName(shape.name, 'history'))
  const typed = quoted(shape.name)
  const keys = shape.keyColumns.map(quoted)
  const parts = partNames(shape)
  const columns = shape.columns.map(({ name }) => quoted(name))
  const written = ['"_first_seen_at"', '"_changed_at"', ...columns]
  const partValues = parts.map((_, index) => `$${9 + index}::text[]`)
  const values = (row: string) =>
    keys
      .map((key, index) => `${row}.k${index}::${SQL_TYPES[shape.keyTypes[index] ?? 'TEXT']} AS ${key}`)
      .join(', ')
  const sameKey = (one: string, other: string) =>
    keys.map((key) => `${one}.${key} = ${other}.${key}`).join(' AND ')
  return `
    WITH
      page AS (SELECT $1::text AS organization, $2::timestamptz AS at, $3::bigint AS seq, $4::boolean AS keeps_history),
      input AS MATERIALIZED (
        SELECT page.*, line.*
        FROM page, unnest($6::text[], $7::boolean[], $8::text[], ${partValues.join(', ')}) AS line (json, is_new, changed_fields, ${parts.join(', ')})
      ),
      added AS (
        INSERT INTO ${raw} ("_organization_id", ${keys.join(', ')}, "_json", "_first_seen_at", "_changed_at", "_first_seen_seq", "_changed_seq")
        SELECT input.organization, ${values('input')}, input.json, since.at, since.at, input.seq, input.seq
        FROM input
        CROSS JOIN LATERAL (
          -- If the clock went back, an item that returns begins when its last version ended.
          SELECT greatest(input.at, max(former."_valid_to")) AS at
          FROM ${history} AS former
          WHERE former."_organization_id" = input.organization AND ${hasKey(shape, 'former', 'input')}
        ) AS since
        WHERE input.is_new
        RETURNING ${keys.join(', ')}, "_first_seen_at", "_changed_at"
      ),
      kept AS (
        -- No version ends before it began, even if the clock went back.
        INSERT INTO ${history} ("_organization_id", ${keys.join(', ')}, "_json", "_valid_from", "_valid_to", "_reason", "_first_seen_at", "_changed_fields", "_valid_from_seq", "_valid_to_seq")
        SELECT input.organization, ${keys.map((key) => `former.${key}`).join(', ')}, former."_json", former."_changed_at", greatest(former."_changed_at", input.at), 'changed', former."_first_seen_at", input.changed_fields, former."_changed_seq", input.seq
        FROM input
        JOIN ${raw} AS former ON former."_organization_id" = input.organization AND ${hasKey(shape, 'former', 'input')}
        WHERE NOT input.is_new AND input.keeps_history
      ),
      changed AS (
        UPDATE ${raw} AS live
        SET "_json" = input.json, "_changed_at" = greatest(live."_changed_at", input.at), "_changed_seq" = input.seq
        FROM input
        WHERE NOT input.is_new AND live."_organization_id" = input.organization AND ${hasKey(shape, 'live', 'input')}
        RETURNING ${keys.map((key) => `live.${key}`).join(', ')}, live."_first_seen_at", live."_changed_at"
      ),
      stored AS (SELECT * FROM added UNION ALL SELECT * FROM changed)
    INSERT INTO ${typed} ("_organization_id", ${[...keys, ...written].join(', ')})
    SELECT page.organization, ${keys.map((key) => `stored.${key}`).join(', ')}, stored."_first_seen_at", stored."_changed_at"${columns.map((column) => `, item.${column}`).join('')}
    FROM page
    CROSS JOIN stored
    JOIN json_populate_recordset(NULL::${typed}, $5::json) AS item ON ${sameKey('item', 'stored')}
    ON CONFLICT ("_organization_id", ${keys.join(', ')})
    DO UPDATE SET ${written.map((column) => `${column} = excluded.${column}`).join(', ')}
  `
}

/** The typed rows as JSON, from which PostgreSQL makes the values of its own types; `organizations`: beside them. */
export function typedRowsText(
  { keyColumns }: Pick<TableShape, 'keyColumns'>,
  upserts: readonly Pick<Upsert, 'key'>[],
  rows: readonly TypedRow[],
  organizations: readonly string[] = [],
): string {
  const lines = upserts.map(({ key }, index) => {
    const line: [string, unknown][] = keyColumns.map((name, part) => [name, key.parts[part]?.text])
    if (organizations[index] !== undefined) line.push(['_organization_id', organizations[index]])
    for (const [name, value] of rows[index]?.values ?? [])
      line.push([name, jsonValueOf(value, rows[index], name)])
    return Object.fromEntries(line)
  })
  return JSON.stringify(lines)
}

function jsonValueOf(value: unknown, row: TypedRow | undefined, name: string): unknown {
  if (typeof value === 'bigint') return String(value)
  if (typeof value !== 'string') return value
  const isArray = row?.arrays.some(({ column }) => column === name) === true
  return storable(isArray ? storableJson(value) : value)
}
