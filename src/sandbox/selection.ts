import type { Collection } from './data.ts'

/** A query as PHP reads it: the values of each name, by the brackets behind the name ('' for none). */
export type Query = Map<string, Map<string, string>>

/** Reads a query string (without `?`): `a[]=1` becomes `a[0]`, the last of equal names counts, values are trimmed. */
export function parseQuery(search: string): Query {
  const query: Query = new Map()
  for (const [key, value] of new URLSearchParams(search)) {
    const [, name = '', brackets = ''] = /^([^[]*)((?:\[[^\]]*\])*)/.exec(key) ?? []
    if (name === '') continue
    const values = query.get(name) ?? new Map<string, string>()
    // A name has a text or a list: the kind that came last.
    if (brackets === '') values.clear()
    else values.delete('')
    values.set(brackets.replace('[]', `[${values.size}]`), value.trim())
    query.set(name, values)
  }
  return query
}

/** What links carry over: the query without `page` and empty values, encoded like PHP; '' when nothing is left. */
export function carriedFilters(query: Query): string {
  const pairs = [...query]
    .filter(([name]) => name !== 'page')
    .flatMap(([name, values]) => [...values].map(([brackets, value]) => [name + brackets, value] as const))
  return pairs
    .filter(([, value]) => value !== '')
    .map(([key, value]) => `${encode(key)}=${encode(value)}`)
    .join('&')
}

/** The page asked for; page 1 for anything but a whole number from 1 on. */
export function requestedPage(query: Query): number {
  const text = query.get('page')?.get('') ?? ''
  const page = /^\+?[1-9]\d*$/.test(text) ? Number(text) : 1
  return Number.isSafeInteger(page) ? page : 1
}

/** The filters that this API knows, or the name of a filter that should be a date and is not. */
export function readFilters(query: Query): Filters | string {
  const states = [...(query.get('state')?.values() ?? [])].filter((state) => state !== '')
  const from = query.get('created_from')
  const createdFrom = parseMoment(from?.get('') ?? '')
  if (from !== undefined && from.get('') !== '' && createdFrom === null) return 'created_from'
  return { states: states.length === 0 ? null : states, createdFrom }
}

const ISO = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d)?(\.\d{1,6})?(Z|[+-]\d\d:\d\d)?)?$/

/** An ISO date or date with time as epoch seconds, in UTC unless it names a zone; null for anything else. */
function parseMoment(text: string): number | null {
  const [, day, minutes = '00:00', seconds = ':00', fraction = '', zone = 'Z'] = ISO.exec(text) ?? []
  if (day === undefined) return null
  // Date.parse reads 30 February as 2 March.
  const midnight = Date.parse(`${day}T00:00:00Z`)
  if (Number.isNaN(midnight) || !new Date(midnight).toISOString().startsWith(day)) return null
  const moment = Date.parse(`${day}T${minutes}${seconds}${zone}`) / 1000
  return Number.isNaN(moment) ? null : moment + Number(`0${fraction}`)
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

/** What a request asks for; null: no filter. */
export interface Filters {
  states: readonly string[] | null
  /** Epoch seconds, inclusive. */
  createdFrom: number | null
}

/** Returns a function that finds the indexes of the items that pass the filters, ascending. All pages of a tick use one search. */
export function createFinder(list: Collection): (filters: Filters, tick: number) => Uint32Array {
  let last = { name: '', indexes: new Uint32Array() as Uint32Array }
  return (filters, tick) => {
    const name = JSON.stringify([filters, tick])
    if (name !== last.name) last = { name, indexes: findIndexes(list, filters, tick) }
    return last.indexes
  }
}

function findIndexes(list: Collection, { states, createdFrom }: Filters, tick: number): Uint32Array {
  const { createdAt, stateAt } = list
  const deleted = list.deletedAt(tick)
  const passes = (index: number) =>
    !deleted.has(index) &&
    (createdFrom === null || createdAt(index) >= createdFrom) &&
    (states === null || stateAt === null || states.includes(stateAt(index, tick)))
  const indexes = new Uint32Array(list.countAt(tick))
  let found = 0
  for (let index = 0; index < indexes.length; index++) if (passes(index)) indexes[found++] = index
  return indexes.subarray(0, found)
}
