import type { Filters } from './finder.ts'

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

/** The filters that this API knows, or null when `created_from` is no date. */
export function readFilters(query: Query): Filters | null {
  const states = [...(query.get('state')?.values() ?? [])].filter((state) => state !== '')
  const moments = query.get('created_from')
  const text = moments?.get('')
  const createdFrom = parseMoment(text ?? '')
  const isList = moments !== undefined && text === undefined
  if (isList || (text !== undefined && text !== '' && createdFrom === null)) return null
  return { states: states.length === 0 ? null : states, createdFrom }
}

const ISO = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d)?(\.\d{1,6})?(Z|[+-]\d\d:\d\d)?)?$/

/** An ISO date or date with time as epoch seconds, in UTC unless it names a zone; null for anything else. */
export function parseMoment(text: string): number | null {
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
