import { UsageError } from '../../errors.ts'
import type { ColumnLimits } from '../columns/column.ts'
import { parentNames } from '../columns/elements.ts'
import { isOfChanges, type Listed, type Value } from './reading.ts'
import { type Dialect, quoted, type Values } from './sql.ts'

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

const NAME_COLUMN = { name: '_organization', type: 'TEXT' }

/** A statement whose rows are counted, or read. */
export interface Part {
  ask: 'count' | 'read'
  text: string
  values: Values
}

/** Statements that are run one after another. Yields them, and receives the counts. */
export type Parts = Generator<Part, void, number>

/** The rows of a table or view; the organization's name is a column behind its id. Throws UsageError. */
export function selectRows(
  dialect: Dialect,
  listed: Listed,
  selection: Selection,
): { columns: string[]; types: string[]; parts: Parts } {
  // A view of a user may have the name of the organization.
  const isNamed = listed.columns.some(({ name }) => name === NAME_COLUMN.name)
  const columns = listed.columns.flatMap((column) =>
    column.name === '_organization_id' && !isNamed ? [column, NAME_COLUMN] : [column],
  )
  const list = columns.map((column) => (column === NAME_COLUMN ? 'o."name"' : `x.${quoted(column.name)}`))
  return {
    columns: columns.map(({ name }) => name),
    types: columns.map((column) => dialect.shownType(column, listed)),
    parts: partsOf(dialect, listed, selection, list.join(', ')),
  }
}

/** The items of a collection as they were sent, of the table `raw`. */
export function selectItems(dialect: Dialect, raw: Listed, selection: Selection): Parts {
  return partsOf(dialect, raw, selection, sentColumns(raw.keys))
}

function partsOf(dialect: Dialect, listed: Listed, selection: Selection, list: string): Parts {
  const { sinceSeq = null } = selection
  const { from, where, values } = rowsOf(listed, selection, dialect.limits)
  const order = [...(sinceSeq === null ? [] : ['x."seq"']), ...dialect.rowOrder(listed)]
  const orderBy = order.length === 0 ? '' : ` ORDER BY ${order.join(', ')}`
  const read = (also = ''): Part => ({
    ask: 'read',
    text: `SELECT ${list} ${from} WHERE ${where}${also}${orderBy}`,
    values,
  })
  const count = (also: string, most: number): Part => ({
    ask: 'count',
    text: `SELECT count(*) FROM (SELECT 1 ${from} WHERE ${where}${also} LIMIT ${most}) AS found`,
    values,
  })
  // The table of a copy has an index on the numbers.
  if (sinceSeq === null || listed.isTable) return only(read())
  return seqWindows(BigInt(sinceSeq), ({ ask, after, upTo, most }) => {
    const also = ` AND x."seq" > ${after}${upTo === null ? '' : ` AND x."seq" <= ${upTo}`}`
    return ask === 'read' ? read(also) : count(also, most)
  })
}

function* only(part: Part): Parts {
  yield part
}

/** Throws UsageError if nothing in it says what `since` or `sinceSeq` asks for. */
function rowsOf(
  listed: Listed,
  { organizationIds, since, sinceSeq = null }: Selection,
  limits: ColumnLimits,
): Record<'from' | 'where', string> & { values: Values } {
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
    from: `FROM ${quoted(listed.name)} AS x LEFT JOIN organizations AS o ON o.id = x."_organization_id"`,
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
  return ['x."_organization_id"', 'o."name"', ...own].join(', ')
}

export function sentItem(row: readonly string[]): SentItem {
  const [organizationId = '', organization = null, firstSeenAt = '', changedAt = '', json = '', ...key] = row
  return { organizationId, organization, key, firstSeenAt, changedAt, json }
}

/** About how many events a window has: they are put in order at once, whatever follows them. */
const MOST_EVENTS = 5000

/** The first one is about an hour wide: a `seq` is about a time in milliseconds. */
const FIRST_WIDTH = 3_600_000n

/** A question about the events with a greater number than `after`, up to `upTo`; null: and all that follow. */
interface SeqWindow {
  /** `count`: how many there are, as far as `most`; `read`: read them. */
  ask: 'count' | 'read'
  after: bigint
  upTo: bigint | null
  most: number
}

/**
 * Cuts the events after a number into windows that are read one after another: the first ones of a million come at once, and nobody
 * sorts all of them. Yields what `part` makes of each question, and receives the counts.
 */
export function* seqWindows<T>(since: bigint, part: (window: SeqWindow) => T): Generator<T, void, number> {
  let [after, width] = [since, FIRST_WIDTH]
  for (;;) {
    const upTo = after + width
    const events = yield part({ ask: 'count', after, upTo, most: MOST_EVENTS + 1 })
    if (events > MOST_EVENTS && width > 1n) {
      width = width > 4n ? width / 4n : 1n
      continue
    }
    if (events > 0) yield part({ ask: 'read', after, upTo, most: events })
    else if ((yield part({ ask: 'count', after: upTo, upTo: null, most: 1 })) === 0) return
    after = upTo
    if (events < MOST_EVENTS / 4) width *= events === 0 ? 8n : 2n
  }
}
