import { UsageError } from '../../errors.ts'
import type { ColumnLimits } from '../columns/column.ts'
import { parentNames } from '../columns/elements.ts'
import { isOfChanges, type Listed, type Value } from './reading.ts'
import { type Dialect, quoted, type Statement } from './sql.ts'

// What `export` selects of a table or view.

/** Which rows of a table or view are meant. */
export interface Selection {
  /** Null: those of all organizations. */
  organizationIds: readonly string[] | null
  /** Rows that have changed since, as the mirror writes times; null: all. */
  since: string | null
  /** Events with a greater `seq`, in its order; null: all. */
  sinceSeq?: string | null
}

/** The statement that reads the rows of a selection. */
export type ReadStatement = Pick<Statement, 'text' | 'values'>

const NAME_COLUMN = { name: '_organization', type: 'TEXT' }

/** The organization's name. Not a join: with one SQLite sorts all events of a view, as it cannot read its parts in their order. */
const NAME = '(SELECT o."name" FROM organizations AS o WHERE o.id = x."_organization_id")'

/** The rows of a table or view; the organization's name is a column behind its id. Throws UsageError. */
export function selectRows(
  dialect: Dialect,
  listed: Listed,
  selection: Selection,
): { columns: string[]; types: string[]; read: ReadStatement } {
  // A view of a user may have the name of the organization.
  const isNamed = listed.columns.some(({ name }) => name === NAME_COLUMN.name)
  const columns = listed.columns.flatMap((column) =>
    column.name === '_organization_id' && !isNamed ? [column, NAME_COLUMN] : [column],
  )
  const list = columns.map((column) => (column === NAME_COLUMN ? NAME : `x.${quoted(column.name)}`))
  return {
    columns: columns.map(({ name }) => name),
    types: columns.map((column) => dialect.shownType(column, listed)),
    read: readStatement(dialect, listed, selection, list.join(', ')),
  }
}

/** The items of a collection as they were sent, of the table `raw`. */
export function selectItems(dialect: Dialect, raw: Listed, selection: Selection): ReadStatement {
  return readStatement(dialect, raw, selection, sentColumns(raw.keys))
}

function readStatement(dialect: Dialect, listed: Listed, selection: Selection, list: string): ReadStatement {
  const { from, where, values } = rowsOf(listed, selection, dialect.limits)
  const order = [...(selection.sinceSeq ? ['x."seq"'] : []), ...dialect.rowOrder(listed)]
  const orderBy = order.length === 0 ? '' : ` ORDER BY ${order.join(', ')}`
  return { text: `SELECT ${list} ${from} WHERE ${where}${orderBy}`, values }
}

/** Throws UsageError if nothing in it says what `since` or `sinceSeq` asks for. */
function rowsOf(
  listed: Listed,
  { organizationIds, since, sinceSeq = null }: Selection,
  limits: ColumnLimits,
): Record<'from' | 'where', string> & Pick<ReadStatement, 'values'> {
  if (sinceSeq !== null) assertHasSeq(listed)
  const ids = Object.fromEntries((organizationIds ?? []).map((id, index) => [`id${index}`, id]))
  const conditions = [
    ...(organizationIds
      ? [
          `x."_organization_id" IN (${Object.keys(ids)
            .map((id) => `:${id}::text`)
            .join(', ')})`,
        ]
      : []),
    ...(since === null ? [] : [sinceSql(listed, limits)]),
    ...(sinceSeq === null ? [] : [`x."seq" > ${sinceSeq}`]),
  ]
  return {
    from: `FROM ${quoted(listed.name)} AS x`,
    where: conditions.join(' AND ') || 'true',
    values: { ...ids, ...(since === null ? {} : { since }) },
  }
}

/** Throws UsageError for what is no view of events, and for one that an earlier version of the program made. */
function assertHasSeq(listed: Listed): void {
  const { name, columns } = listed
  if (!isOfChanges(listed)) throw new UsageError(`--since-seq: ${name} has no events`)
  if (columns[0]?.name !== 'seq')
    throw new UsageError(
      `--since-seq: ${name} was made by an earlier admin-mirror and has no column seq; sync (and publish) it with this one`,
    )
}

/** By which time a row has changed: its own, an event's, a version's end, or that of the row an element belongs to. */
function sinceSql(listed: Listed, limits: ColumnLimits): string {
  const { name, collection, keys, columns } = listed
  const has = (column: string) => columns.some((other) => other.name === column)
  const time = ['_changed_at', ...(isOfChanges(listed) ? ['at'] : []), '_valid_to'].find(has)
  if (time !== undefined) return `x.${quoted(time)} >= :since::timestamptz`
  const parents = parentNames(keys, limits)
  if (keys.length === 0 || !parents.every(has)) throw new UsageError(`--since: ${name} has no time of change`)
  const same = keys.map((key, index) => `p.${quoted(key)} = x.${quoted(parents[index] ?? '')}`).join(' AND ')
  return `EXISTS (SELECT 1 FROM ${quoted(collection)} AS p WHERE p."_organization_id" = x."_organization_id" AND ${same} AND p."_changed_at" >= :since::timestamptz)`
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

/** What `sentItem` reads of a collection with these keys. */
function sentColumns(keys: readonly string[]): string {
  const own = ['_first_seen_at', '_changed_at', '_json', ...keys].map((column) => `x.${quoted(column)}`)
  return ['x."_organization_id"', NAME, ...own].join(', ')
}

export function sentItem(row: readonly string[]): SentItem {
  const [organizationId = '', organization = null, firstSeenAt = '', changedAt = '', json = '', ...key] = row
  return { organizationId, organization, key, firstSeenAt, changedAt, json }
}
