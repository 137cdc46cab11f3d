import { UsageError } from '../../../errors.ts'
import { seqWindows, withinWindow } from '../../core/seq.ts'
import { type Connection, quoted } from '../sql.ts'
import { keyColumnsOf, type Listed, type ListedColumn } from './listed.ts'
import type { Rows, Value } from './rows.ts'

/** Which rows of a table or view are meant. */
export interface Selection {
  /** Null: those of all organizations. */
  organizationIds: readonly string[] | null
  /** Rows that have changed since, as the mirror writes times; null: all. */
  since: string | null
  /** Events with a greater `seq`, in its order; null: all. */
  sinceSeq?: string | null
}

/** An item as it was sent, and what the mirror knows of it. */
export interface SentItem {
  organizationId: string
  organization: string | null
  key: Value[]
  firstSeenAt: string
  changedAt: string
  json: string
}

/** Rows whose columns have types. */
export interface TypedRows extends Rows {
  /** As declared, or empty where the store does not know; `OWN_TIME` for our own times. */
  types: string[]
}

/** The type of our own times: text of one form. */
export const OWN_TIME = 'TIME'

export const OWN_TIMES: readonly string[] = ['_first_seen_at', '_changed_at', '_valid_from', '_valid_to']

function isOwnTime(listed: Listed, column: string): boolean {
  return OWN_TIMES.includes(column) || (column === 'at' && isOfChanges(listed))
}

function isOfChanges({ name, collection }: Listed): boolean {
  return name === `${collection}_changes`
}

/** The rows of a table or view; the organization's name is a column behind its id. Throws UsageError. */
export function selectRows(connection: Connection, listed: Listed, selection: Selection): TypedRows {
  const { columns, expressions } = selectedColumns(listed)
  const query = fromWhere(connection, listed, selection)
  const select = `SELECT ${expressions.join(', ')}`
  const { sinceSeq = null } = selection
  // The table of a copy has an index on the numbers.
  const isCut = sinceSeq !== null && !listed.isTable
  return {
    columns: columns.map(({ name }) => name),
    types: columns.map(({ name, type }) => (isOwnTime(listed, name) ? OWN_TIME : type)),
    rows: lazily(() =>
      isCut ? inWindows(connection, select, query, BigInt(sinceSeq)) : read(connection, select, query),
    ),
  }
}

function read(
  connection: Connection,
  select: string,
  { from, where, order, values }: Query,
): Iterable<Value[]> {
  const statement = connection.prepare(`${select} ${from} WHERE ${where} ${order}`).raw().safeIntegers()
  return statement.iterate(...values) as Iterable<Value[]>
}

/** All windows are of one moment, as one statement is. */
function* inWindows(connection: Connection, select: string, query: Query, since: bigint): Iterable<Value[]> {
  connection.exec('BEGIN')
  try {
    const windows = seqWindows(since)
    for (let next = windows.next(); !next.done; ) {
      const { ask, most, ...window } = next.value
      const where = `${query.where} AND ${withinWindow(window)}`
      if (ask === 'read') yield* read(connection, select, { ...query, where })
      const count = `SELECT count(*) FROM (SELECT 1 ${query.from} WHERE ${where} LIMIT ${most})`
      next = windows.next(
        ask === 'read'
          ? 0
          : (connection
              .prepare(count)
              .pluck()
              .get(...query.values) as number),
      )
    }
  } finally {
    connection.exec('COMMIT')
  }
}

const NAME_COLUMN = { name: '_organization', type: 'TEXT' }

/** The columns of a result, with the organization's name (of `o`) behind its id, and what is selected (of `x`) for each. */
export function selectedColumns(listed: Pick<Listed, 'columns'>): {
  columns: ListedColumn[]
  expressions: string[]
} {
  // A view of a user may have the name of the organization.
  const isNamed = listed.columns.some(({ name }) => name === NAME_COLUMN.name)
  const columns = listed.columns.flatMap((column) =>
    column.name === '_organization_id' && !isNamed ? [column, NAME_COLUMN] : [column],
  )
  const expressions = columns.map((column) =>
    column === NAME_COLUMN ? 'o."name"' : `x.${quoted(column.name)}`,
  )
  return { columns, expressions }
}

/** What `sentItem` reads, before the columns of the key. */
export const SENT_COLUMNS = [
  'x."_organization_id"',
  'o."name"',
  'x."_first_seen_at"',
  'x."_changed_at"',
  'x."_json"',
]

export function sentItem(row: readonly string[]): SentItem {
  const [organizationId = '', organization = null, firstSeenAt = '', changedAt = '', json = '', ...key] = row
  return { organizationId, organization, key, firstSeenAt, changedAt, json }
}

/** The items of a collection as they were sent. */
export function selectItems(connection: Connection, raw: Listed, selection: Selection): Iterable<SentItem> {
  const keys = keyColumnsOf(connection, raw.collection).map((key) => `x.${quoted(key)}`)
  const query = fromWhere(connection, raw, selection)
  const select = `SELECT ${[...SENT_COLUMNS, ...keys].join(', ')}`
  return lazily(function* () {
    for (const row of read(connection, select, query) as Iterable<string[]>) yield sentItem(row)
  })
}

/** A connection with a statement that has begun and not ended cannot be closed. */
function lazily<T>(begin: () => Iterable<T>): Iterable<T> {
  return { [Symbol.iterator]: () => begin()[Symbol.iterator]() }
}

interface Query {
  from: string
  where: string
  order: string
  values: readonly unknown[]
}

function fromWhere(
  connection: Connection,
  listed: Listed,
  { organizationIds, since, sinceSeq = null }: Selection,
): Query {
  if (sinceSeq !== null) assertHasSeq(listed, isOfChanges(listed))
  const some = `x."_organization_id" IN (${(organizationIds ?? []).map(() => '?').join(', ')})`
  const conditions = [
    ...(organizationIds ? [some] : []),
    ...(since === null ? [] : [sinceSql(connection, listed)]),
    ...(sinceSeq === null ? [] : [`x."seq" > ${sinceSeq}`]),
  ]
  const inOrder = isInOrder(connection, listed) ? 'ORDER BY x._rowid_' : ''
  return {
    from: `FROM ${quoted(listed.name)} AS x LEFT JOIN organizations AS o ON o.id = x."_organization_id"`,
    where: conditions.join(' AND ') || 'true',
    order: sinceSeq === null ? inOrder : 'ORDER BY x."seq"',
    values: [...(organizationIds ?? []), ...(since === null ? [] : [since])],
  }
}

/** Throws UsageError for what is no view of events, and for one that an earlier version of the program made. */
export function assertHasSeq({ name, columns }: Pick<Listed, 'name' | 'columns'>, isEvents: boolean): void {
  if (!isEvents) throw new UsageError(`--since-seq: ${name} has no events`)
  if (columns[0]?.name !== 'seq')
    throw new UsageError(
      `--since-seq: ${name} was made by an earlier admin-mirror and has no column seq; sync (and publish) it with this one`,
    )
}

/** By which time a row has changed: its own, an event's, a version's end, or that of the row an element belongs to. */
function sinceSql(connection: Connection, listed: Listed): string {
  const { name, collection, columns } = listed
  const names = columns.map((column) => column.name)
  const own = ['_changed_at', ...(isOfChanges(listed) ? ['at'] : []), '_valid_to']
  const time = own.find((one) => names.includes(one))
  if (time !== undefined) return `x.${quoted(time)} >= ?`
  const keys = keyColumnsOf(connection, collection)
  if (keys.length === 0 || !keys.every((key) => names.includes(`_parent_${key}`)))
    throw new UsageError(`--since: ${name} has no time of change`)
  const same = keys.map((key) => `p.${quoted(key)} = x.${quoted(`_parent_${key}`)}`).join(' AND ')
  return `EXISTS (SELECT 1 FROM ${quoted(collection)} AS p WHERE p."_organization_id" = x."_organization_id" AND ${same} AND p."_changed_at" >= ?)`
}

/** A view has no rowid, and a table may be without. */
function isInOrder(connection: Connection, { name, isTable }: Listed): boolean {
  const sql = 'SELECT wr FROM pragma_table_list WHERE schema = ? AND name = ?'
  return isTable && connection.prepare(sql).pluck().get('main', name) === 0
}
