import { parentNames } from '../../columns/view-names.ts'
import { tableName } from '../../core/names.ts'
import {
  isOfChanges,
  type Listed,
  rowsOf,
  type SelectedRows,
  type Selection,
  type SentItem,
  selectedColumns,
  sentColumns,
  sentItem,
  type Value,
} from '../../core/reading.ts'
import { seqWindows, withinWindow } from '../../core/seq.ts'
import { numberedValues } from '../driver.ts'
import { POSTGRES_LIMITS, quoted } from '../sql.ts'
import { openCursor, type StreamedRows } from './cursor.ts'
import { findListed, type Reading, SEQUENCE, shownType } from './listed.ts'

/** The rows of a table or view; the organization's name is a column behind its id. Throws UsageError. */
export async function selectRows(sql: Reading, listed: Listed, selection: Selection): Promise<StreamedRows> {
  const { columns, expressions } = selectedColumns(listed)
  const query = queryOf(listed, selection)
  const select = `SELECT ${expressions.join(', ')}`
  const { sinceSeq = null } = selection
  return {
    columns: columns.map(({ name }) => name),
    types: columns.map(({ type }) => shownType(type)),
    batches:
      sinceSeq === null
        ? (await open(sql, select, query)).batches
        : inWindows(sql, select, query, BigInt(sinceSeq)),
  }
}

function open(sql: Reading, select: string, { from, where, order, values }: Query): Promise<StreamedRows> {
  return openCursor(sql, ...numberedValues(`${select} ${from} WHERE ${where} ORDER BY ${order}`, values))
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
      yield* (await open(sql, select, { ...query, where })).batches
      next = windows.next(0)
    } else {
      const count = `SELECT count(*) FROM (SELECT 1 ${query.from} WHERE ${where} LIMIT ${most}) AS found`
      const { rows } = await sql.arrays(...numberedValues(count, query.values))
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
  const { batches } = await open(sql, `SELECT ${sentColumns(keys)}`, queryOf(raw, selection))
  return itemsOf(batches)
}

async function* itemsOf(batches: AsyncIterable<Value[][]>): AsyncIterable<SentItem[]> {
  for await (const rows of batches as AsyncIterable<string[][]>) yield rows.map(sentItem)
}

interface Query extends SelectedRows {
  order: string
}

function queryOf(listed: Listed, selection: Selection): Query {
  const { name, collection, keys, columns } = listed
  const parents = parentNames(keys, POSTGRES_LIMITS)
  const isHistory = name === tableName(collection, 'history')
  const time = isOfChanges(listed) ? ['at'] : []
  const first = selection.sinceSeq == null ? [] : ['seq']
  const order = [...first, '_organization_id', ...keys, ...parents, '_index', SEQUENCE, ...time]
    .filter((one) => columns.some((column) => column.name === one) || (isHistory && one === SEQUENCE))
    .map((one) => `x.${quoted(one)}`)
  return { ...rowsOf(listed, selection, POSTGRES_LIMITS), order: order.join(', ') }
}
