import { parseMoment } from './calendar.ts'
import type { Filters } from './finder.ts'

/** A query as PHP reads it: a name, then its values by what stands in brackets behind the name ('' for none). */
export type Query = Map<string, Map<string, string>>

/** Reads a query string (without `?`): `a[]=1` becomes `a[0]`, of the same name the last one counts, values are trimmed. */
export function parseQuery(search: string): Query {
  const query: Query = new Map()
  for (const [key, value] of new URLSearchParams(search)) {
    const [, name = '', brackets = ''] = /^([^[]*)((?:\[[^\]]*\])*)/.exec(key) ?? []
    if (name === '') continue
    const values = query.get(name) ?? new Map<string, string>()
    // A name is a text or a list, whichever came last.
    if (brackets === '') values.clear()
    else values.delete('')
    values.set(brackets.replace('[]', `[${values.size}]`), value.trim())
    query.set(name, values)
  }
  return query
}

/** What links carry over: the query without `page` and without empty values, encoded as PHP does it; '' when nothing is left. */
export function carriedFilters(query: Query): string {
  const pairs = [...query]
    .filter(([name]) => name !== 'page')
    .flatMap(([name, values]) => [...values].map(([brackets, value]) => [name + brackets, value] as const))
  return pairs
    .filter(([, value]) => value !== '')
    .map(([key, value]) => `${encode(key)}=${encode(value)}`)
    .join('&')
}

/** The page asked for. Anything that is no whole number from 1 on is silently page 1. */
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

function encode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}
