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
  const momentOf = (name: string) => parseMoment(query.get(name)?.get('') ?? '')
  const wrong = ['created_from', 'updated_after'].find(
    (name) => query.has(name) && query.get(name)?.get('') !== '' && momentOf(name) === null,
  )
  if (wrong !== undefined) return wrong
  const [createdFrom, updatedAfter] = [momentOf('created_from'), momentOf('updated_after')]
  return { states: states.length === 0 ? null : states, createdFrom, updatedAfter }
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
  /** Epoch seconds, exclusive. */
  updatedAfter: number | null
}

/** Finds the items of a list that pass the filters. One by state or by update looks at every item, once for all pages of a tick. */
export function createFinder(collection: Collection): (filters: Filters, tick: number) => Selection {
  let last = { name: '', selection: exactly(new Uint32Array()) }

  function scanned(filters: Pick<Filters, 'states' | 'updatedAfter'>, tick: number): Selection {
    const name = JSON.stringify([filters, tick])
    if (name !== last.name) last = { name, selection: scan(collection, filters, tick) }
    return last.selection
  }

  return ({ createdFrom, updatedAfter, ...filters }, tick) => {
    const count = collection.countAt(tick)
    const states = collection.stateAt === null ? null : filters.states
    const selection =
      states === null && updatedAfter === null
        ? allBut(count, collection.deletedAt(tick))
        : scanned({ states, updatedAfter }, tick)
    if (createdFrom === null) return selection
    return startingAt(
      selection,
      firstWhere(count, (index) => collection.createdAt(index) >= createdFrom),
    )
  }
}

function scan(
  { countAt, deletedAt, stateAt, updatedAt }: Collection,
  { states, updatedAfter }: Pick<Filters, 'states' | 'updatedAfter'>,
  tick: number,
): Selection {
  const passes = (index: number) =>
    (states === null || (stateAt !== null && states.includes(stateAt(index, tick)))) &&
    (updatedAfter === null || updatedAt(index, tick) > updatedAfter)
  const listed = allBut(countAt(tick), deletedAt(tick))
  const indexes = Uint32Array.from({ length: listed.total }, (_, position) => listed.indexAt(position))
  return exactly(indexes.filter(passes))
}

/** An ascending list of indexes that is never written out: a lookup costs the same everywhere in it. */
export interface Selection {
  total: number
  indexAt: (position: number) => number
  /** The position of the first member from `index` on. */
  positionOf: (index: number) => number
}

/** All indexes below `count` but the `gaps`, which are sorted and below `count` too. */
function allBut(count: number, gaps: readonly number[]): Selection {
  return {
    total: count - gaps.length,
    indexAt: (position) => position + firstWhere(gaps.length, (at) => (gaps[at] ?? 0) - at > position),
    positionOf: (index) => index - firstWhere(gaps.length, (at) => (gaps[at] ?? 0) >= index),
  }
}

/** The same members, the last one first. */
export function backwards({ total, indexAt }: Selection): Pick<Selection, 'total' | 'indexAt'> {
  return { total, indexAt: (position) => indexAt(total - 1 - position) }
}

function exactly(indexes: Uint32Array): Selection {
  return {
    total: indexes.length,
    indexAt: (position) => indexes[position] ?? 0,
    positionOf: (index) => firstWhere(indexes.length, (at) => (indexes[at] ?? 0) >= index),
  }
}

/** The members of a selection from `index` on. */
export function startingAt(selection: Selection, index: number): Selection {
  const skipped = selection.positionOf(index)
  return {
    total: selection.total - skipped,
    indexAt: (position) => selection.indexAt(position + skipped),
    positionOf: (other) => Math.max(0, selection.positionOf(other) - skipped),
  }
}

/** The first of 0 to `length` - 1 for which `isReached` holds, else `length`. It must hold for all that follow. */
export function firstWhere(length: number, isReached: (at: number) => boolean): number {
  let low = 0
  let high = length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isReached(middle)) high = middle
    else low = middle + 1
  }
  return low
}
