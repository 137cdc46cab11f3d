import { UsageError } from '../../../errors.ts'
import { parentNames } from '../../columns/view-names.ts'
import { seqWindows, withinWindow } from '../../core/seq.ts'
import { tableName } from '../../core/sql.ts'
import type { Value } from '../../sqlite/read/rows.ts'
import {
  assertHasSeq,
  SENT_COLUMNS,
  type Selection,
  type SentItem,
  selectedColumns,
  sentItem,
} from '../../sqlite/read/selection.ts'
import { literal, POSTGRES_LIMITS, quoted } from '../sql.ts'
import { changesViewName } from '../tables/shape.ts'
import { openCursor, type StreamedRows } from './cursor.ts'
import { findListed, type Listed, type Reading, SEQUENCE, typeOf } from './listed.ts'

/** The rows of a table or view; the organization's name is a column behind its id. Throws UsageError. */
export async function selectRows(sql: Reading, listed: Listed, selection: Selection): Promise<StreamedRows> {
  const { columns, expressions } = selectedColumns(listed)
  const query = fromWhere(listed, selection)
  const select = `SELECT ${expressions.join(', ')}`
  const { sinceSeq = null } = selection
  return {
    columns: columns.map(({ name }) => name),
    types: columns.map(({ type }) => typeOf(type)),
    batches:
      sinceSeq === null
        ? (await openCursor(sql, textOf(select, query))).batches
        : inWindows(sql, select, query, BigInt(sinceSeq)),
  }
}

function textOf(select: string, { from, where, order }: Query): string {
  return `${select} ${from} WHERE ${where} ORDER BY ${order}`
}

async function* inWindows(
  sql: Reading,
  select: string,
  query: Query,
  since: bigint,
): AsyncIterable<Value[][]> {
  const windows = seqWindows(since)
  for (let next = windows.next(); !next.done; ) {
    const { ask, most, ...window } = next.value
    const where = `${query.where} AND ${withinWindow(window)}`
    if (ask === 'read') {
      yield* (await openCursor(sql, textOf(select, { ...query, where }))).batches
      next = windows.next(0)
    } else {
      const { rows } = await sql.arrays(
        `SELECT count(*) FROM (SELECT 1 ${query.from} WHERE ${where} LIMIT ${most}) AS found`,
      )
      next = windows.next(Number(rows[0]?.[0]))
    }
  }
}

/** The items of a collection as they were sent. */
export async function selectItems(
  sql: Reading,
  { collection, keys }: Listed,
  selection: Selection,
): Promise<AsyncIterable<SentItem[]>> {
  const raw = await findListed(sql, tableName(collection, 'raw'))
  if (!raw) throw new Error(`${collection} has no table of its items`)
  const shown = [...SENT_COLUMNS, ...keys.map((key) => `x.${quoted(key)}`)].join(', ')
  const { batches } = await openCursor(sql, textOf(`SELECT ${shown}`, fromWhere(raw, selection)))
  return itemsOf(batches)
}

async function* itemsOf(batches: AsyncIterable<Value[][]>): AsyncIterable<SentItem[]> {
  for await (const rows of batches as AsyncIterable<string[][]>) yield rows.map(sentItem)
}

interface Query {
  from: string
  where: string
  order: string
}

function fromWhere(listed: Listed, { organizationIds, since, sinceSeq = null }: Selection): Query {
  const { name, keys, columns } = listed
  const isEvents = name === changesViewName(listed.collection)
  if (sinceSeq !== null) assertHasSeq(listed, isEvents)
  const ids = (organizationIds ?? []).map(literal).join(', ')
  const conditions = [
    ...(organizationIds ? [`x."_organization_id" IN (${ids})`] : []),
    ...(since === null ? [] : [sinceSql(listed, `${literal(since)}::timestamptz`)]),
    ...(sinceSeq === null ? [] : [`x."seq" > ${sinceSeq}`]),
  ]
  const parents = parentNames(keys, POSTGRES_LIMITS)
  const isHistory = name === tableName(listed.collection, 'history')
  const time = isEvents ? ['at'] : []
  const first = sinceSeq === null ? [] : ['seq']
  const order = [...first, '_organization_id', ...keys, ...parents, '_index', SEQUENCE, ...time]
    .filter((one) => columns.some((column) => column.name === one) || (isHistory && one === SEQUENCE))
    .map((one) => `x.${quoted(one)}`)
  return {
    from: `FROM ${quoted(name)} AS x LEFT JOIN organizations AS o ON o.id = x."_organization_id"`,
    where: conditions.join(' AND ') || 'true',
    order: order.join(', '),
  }
}

/** By which time a row has changed: its own, an event's, a version's end, or that of the row an element belongs to. */
function sinceSql({ name, collection, keys, columns }: Listed, since: string): string {
  const has = (one: string) => columns.some((column) => column.name === one)
  const own = ['_changed_at', ...(name === changesViewName(collection) ? ['at'] : []), '_valid_to']
  const time = own.find(has)
  if (time !== undefined) return `x.${quoted(time)} >= ${since}`
  const parents = parentNames(keys, POSTGRES_LIMITS)
  if (!parents.every(has)) throw new UsageError(`--since: ${name} has no time of change`)
  const same = keys.map((key, index) => `p.${quoted(key)} = x.${quoted(parents[index] ?? '')}`).join(' AND ')
  return `EXISTS (SELECT 1 FROM ${quoted(collection)} AS p WHERE p."_organization_id" = x."_organization_id" AND ${same} AND p."_changed_at" >= ${since})`
}
