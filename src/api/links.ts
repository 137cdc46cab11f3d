import { JobError } from '../errors.ts'
import type { Filters } from '../sync/types.ts'

/**
 * The page that a `links.next` names; null at the end of the list. Nothing else of the link is read: each page is asked for at
 * `baseUrl` with the configured filters, since proxies rewrite links, and paginators leave filters out of them.
 * Throws LINK_REFUSED.
 */
export function nextPage(next: unknown, currentPage: number): number | null {
  if (next === null) return null
  if (next === undefined) throw refused('is missing, so the end of the list is unknown')
  const url = typeof next === 'string' ? URL.parse(next, 'http://relative') : null
  const [text = '', ...more] = url?.searchParams.getAll('page') ?? []
  if (more.length > 0) throw refused('names two pages')
  // Only a plain number: PHP reads 02 or 2.0 as page 1. Any other text is not shown, since it may repeat what was sent.
  if (!/^(?:0|[1-9]\d{0,14})$/.test(text)) throw refused('names no page')
  if (Number(text) !== currentPage + 1) throw refused(`leads from page ${currentPage} to page ${text}`)
  return currentPage + 1
}

function refused(how: string): JobError {
  return new JobError('LINK_REFUSED', `links.next ${how}`)
}

/** The address of a page: the filters in the order of the configuration, then the page. */
export function pageAddress(baseUrl: string, path: string, filters: Filters, page: number): URL {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(filters))
    for (const one of Array.isArray(value) ? value : [value]) query.append(name, one)
  query.append('page', String(page))
  return new URL(`${baseUrl}${path}?${query.toString()}`)
}
