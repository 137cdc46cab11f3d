import { foldName, freeName, SQLITE_LIMITS } from '../../columns/column.ts'
import { quoted } from '../sql.ts'

/** References to other things, by which people group and join. */
const REFERENCE = /(^|_)(id|uuid|sku|ean|email)$/i

/** Times, by which people sort and cut. */
const TIME = /(_at|_on|(^|_)date)$/i

// What people add up, and what they tell apart meanwhile: within the index of a reference, so that the table is not read. One currency at a
// time is added up, so rows are in that order; whose the reference is comes last.
const AMOUNT = /(^|_)(total|amount|price|cents|quantity|qty)(_|$)/i
const CURRENCY = /(^|_)currency$/i
const STATE = /(^|_)(state|status)$/i
const ORGANIZATION = '_organization_id'

/** In elements of arrays, beside the reference that it spells out. */
const NAME = /^(name|title)$/i

/** Each index takes a part of the time in which a copy is made. */
const MOST_TIMES = 4
const MOST_REFERENCES = 4
const MOST_CURRENCIES = 1
const MOST_STATES = 1
const MOST_AMOUNTS = 3

export interface CopiedColumn {
  name: string
  type: string
}

/**
 * The columns of the indexes that pay in a typed table, chosen by name and type; without keys: in the elements of an array.
 */
export function columnsToIndex(columns: readonly CopiedColumn[], keys: readonly string[]): string[][] {
  const fields = columns.filter(({ name }) => !name.startsWith('_') && !keys.includes(name))
  const named = (pattern: RegExp, most: number, isText: boolean | null = null) =>
    fields
      .filter(({ name, type }) => pattern.test(name) && (isText === null || (type === 'TEXT') === isText))
      .slice(0, most)
      .map(({ name }) => name)
  const isOfElements = keys.length === 0
  const added = [
    ...(isOfElements ? named(NAME, 1) : []),
    ...named(CURRENCY, MOST_CURRENCIES),
    ...named(STATE, MOST_STATES),
    ...named(AMOUNT, MOST_AMOUNTS, false),
    ORGANIZATION,
  ]
  const own = columns.map(({ name }) => name).filter((name) => /^_(changed|first_seen)_at$/.test(name))
  return [
    ...[...named(TIME, MOST_TIMES, true), ...own].map((time) => [time]),
    ...named(REFERENCE, MOST_REFERENCES).map((reference) => [reference, ...added]),
  ]
}

/** The SQL of the indexes of one copy. No table's name begins with `_`. */
export function createIndexesSql(
  tables: readonly { readonly name: string; readonly indexes: readonly string[][] }[],
): string[] {
  const taken = new Set<string>()
  return tables.flatMap(({ name: table, indexes }) =>
    indexes.map((columns) => {
      // The API's names may hold `_by_`, too, so that two indexes would have one name.
      const name = freeName(`_${table}_by_${columns[0]}`, (one) => taken.has(foldName(one)), SQLITE_LIMITS)
      taken.add(foldName(name))
      return `CREATE INDEX ${quoted(name)} ON ${quoted(table)} (${columns.map(quoted).join(', ')})`
    }),
  )
}
