import type { CollectionSummary, ColumnSummary } from '../../store/sqlite/read/describe.ts'
import { belongsTo, type Listed } from '../../store/sqlite/read/listed.ts'
import type { Parameters } from '../../store/sqlite/read/query.ts'
import type { Reader } from '../../store/sqlite/read/reader.ts'
import type { Rows, Value } from '../../store/sqlite/read/rows.ts'
import type { Selection, SentItem, TypedRows } from '../../store/sqlite/read/selection.ts'
import type { Batches } from '../output/formats/format.ts'
import type { QueryWork } from './task.ts'

/** At once from a file, later from a server. */
type MaybePromise<T> = T | Promise<T>

/** Rows with the names and types of their columns. */
interface ReadRows extends Pick<TypedRows, 'columns' | 'types'> {
  batches: Batches<Value[]>
}

/** A mirror of either kind, for commands that only read it: `query`, `export`, `describe`. */
export interface ReadableMirror {
  /** Throws UsageError for a statement that does not only read, and for wrong SQL. */
  query(work: Pick<QueryWork, 'sql' | 'parameters'>): MaybePromise<ReadRows>
  collections(): MaybePromise<string[]>
  organizations(): MaybePromise<{ id: string; name: string }[]>
  /** The names of all tables and views of collections. */
  names(): MaybePromise<string[]>
  /** The table or view of a collection with this name. The methods below take what this one has returned. */
  find(name: string): MaybePromise<Listed | null>
  /** The names of the other tables and views of its collection. */
  relatives(listed: Listed): MaybePromise<string[]>
  /** Throws UsageError for `since` if the table has no time of change. */
  rows(listed: Listed, selection: Selection): MaybePromise<ReadRows>
  /** The items of its collection as they were sent. */
  items(listed: Listed, selection: Selection): MaybePromise<Batches<SentItem>>
  describe(listed: Listed): MaybePromise<ColumnSummary[]>
  summary(collection: string): MaybePromise<CollectionSummary>
}

/** Of a mirror in a file. All rows are one batch, which is read while it is written. */
export function readableFile(reader: Reader): ReadableMirror {
  return {
    ...reader,
    query: ({ sql, parameters }) => asBatch(reader.query(sql, parametersOf(parameters))),
    relatives: ({ name, collection }) =>
      reader.names().filter((one) => one !== name && belongsTo(collection, one)),
    rows: (listed, selection) => asBatch(reader.rows(listed, selection)),
    items: ({ collection }, selection) => [reader.items(collection, selection)],
  }
}

function asBatch<Head extends Rows>({ rows, ...head }: Head) {
  return { ...head, batches: [rows] }
}

const [LEAST, MOST] = [-(2n ** 63n), 2n ** 63n - 1n]

/** The values of `--param NAME=VALUE`; `:NAME=VALUE` is understood, too. The last of several of one name counts. */
export function parametersOf(typed: readonly (readonly [name: string, value: string])[]): Parameters {
  return new Map(typed.map(([name, value]) => [name.replace(/^[:@$]/, ''), parameterValue(value)]))
}

/**
 * What is written as SQLite itself writes a number is that number, and compared with a TEXT column it is the same text again;
 * anything else (007, 1.10) is a text.
 */
function parameterValue(text: string): string | number | bigint {
  if (/^(?:0|-?[1-9]\d*)$/.test(text)) {
    const whole = BigInt(text)
    return whole >= LEAST && whole <= MOST ? whole : text
  }
  const isPlain = /^-?(?:0|[1-9]\d{0,9})\.\d{0,4}[1-9]$/.test(text)
  return isPlain ? Number(text) : text
}
