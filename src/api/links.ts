import type { Filters } from '../sync/types.ts'
import { printable } from '../text.ts'

/** What a `links.next` has to agree with. */
export interface LinkRules {
  /** `api.baseUrl`, which may carry a path prefix. */
  baseUrl: string
  /** The collection's path, without that prefix. */
  path: string
  filters: Filters
  /** Further host names that a link may carry. */
  linkHosts: readonly string[]
  currentPage: number
}

export type LinkVerdict = { page: number } | { refused: string }

/**
 * The page a `links.next` leads to, or why it is not followed.
 * The link is a hint and never an address: the page it names is asked for at `baseUrl`, so a link that lies can stop
 * a walk but cannot send the token anywhere.
 */
export function readNextLink(link: string, rules: LinkRules): LinkVerdict {
  const url = parseUrl(link, rules)
  if (!url) return refuse('is no address', link)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return refuse('is not http', link)
  if (!isKnownHost(url, rules)) {
    return refuse(
      `leads to another host, ${printable(url.hostname, 80)}; if it is the same service, add it to api.linkHosts`,
      link,
    )
  }
  if (!isSamePath(url.pathname, rules))
    return refuse(`leads to another path, ${printable(url.pathname, 80)}`, link)
  const query = valuesByName(url.searchParams)
  const changed = changedFilter(query, rules.filters)
  if (changed) return refuse(changed, link)
  return readPage(query.get('page') ?? [], rules.currentPage, link)
}

/** The query of a request: the filters, then the page. Parameters keep the order of the configuration. */
export function pageQuery(filters: Filters, page: number): URLSearchParams {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(filters)) {
    for (const one of Array.isArray(value) ? value : [value]) query.append(name, one)
  }
  query.append('page', String(page))
  return query
}

function parseUrl(link: string, rules: LinkRules): URL | null {
  const base = new URL(rules.baseUrl)
  base.pathname = base.pathname.replace(/\/$/, '') + rules.path
  return URL.parse(link, base.href)
}

function isKnownHost(url: URL, rules: LinkRules): boolean {
  // Scheme and port are not compared: behind a proxy that ends TLS, a server builds links from what it saw itself.
  const hosts = [new URL(rules.baseUrl).hostname, ...rules.linkHosts.map((host) => host.toLowerCase())]
  return hosts.includes(url.hostname)
}

function isSamePath(pathname: string, rules: LinkRules): boolean {
  const prefix = new URL(rules.baseUrl).pathname.replace(/\/$/, '')
  // Written through URL as well, so that both sides are encoded alike.
  const paths = [prefix + rules.path, rules.path].map((path) => new URL(path, rules.baseUrl).pathname)
  return paths.map(withoutSlash).includes(withoutSlash(pathname))
}

function withoutSlash(path: string): string {
  return path.replace(/\/$/, '')
}

/**
 * The values of each parameter. Servers write `state[]` back as `state[0]`, `state[1]`, so a number at the end of a name
 * does not count; nor does the order of the values.
 */
function valuesByName(parameters: Iterable<[string, string]>): Map<string, string[]> {
  const query = new Map<string, string[]>()
  for (const [name, value] of parameters) {
    const plain = name.replace(/\[\d+\]$/, '[]')
    query.set(plain, [...(query.get(plain) ?? []), value].toSorted())
  }
  return query
}

function changedFilter(query: Map<string, string[]>, filters: Filters): string | null {
  const sent = pageQuery(filters, 1)
  sent.delete('page')
  for (const [name, values] of valuesByName(sent)) {
    const found = query.get(name) ?? []
    // Empty values may be missing: servers leave them out of their links, and they select nothing.
    const filled = values.filter((value) => value !== '')
    if (isSameList(found, values) || isSameList(found, filled)) continue
    const shown = printable(name, 80)
    return `${query.has(name) ? 'changes' : 'drops'} the filter ${shown}`
  }
  return null
}

function isSameList(one: string[], other: string[]): boolean {
  return one.length === other.length && one.every((value, index) => value === other[index])
}

function readPage(values: string[], currentPage: number, link: string): LinkVerdict {
  const [text] = values
  if (values.length > 1) return refuse('names two pages', link)
  // Only as a server writes it: what reads 02 or 2.0 as something else (PHP: as page 1) would answer another page.
  if (text === undefined || !/^(?:0|[1-9]\d*)$/.test(text)) return refuse('names no page', link)
  const page = currentPage + 1
  if (text !== String(page))
    return refuse(`leads from page ${currentPage} to page ${printable(text, 20)}`, link)
  return { page }
}

function refuse(reason: string, link: string): LinkVerdict {
  return { refused: `links.next ${reason} (${shorten(link)})` }
}

/**
 * The link as far as it may be told: of the query the names and the page alone, since servers write what they were sent
 * into it; no user information, which may hold a password, and no fragment.
 */
function shorten(link: string): string {
  const url = URL.parse(link)
  const isWeb = url?.protocol === 'http:' || url?.protocol === 'https:'
  const address = isWeb ? `${url.protocol}//${url.host}${url.pathname}` : withoutUser(link)
  const query = /^[^?#]*\?([^#]*)/.exec(link)?.[1]
  return printable(address) + (query === undefined ? '' : `?${namesOf(query)}`)
}

/** Addresses are read with backslashes as slashes, and with any number of them behind the scheme. */
function withoutUser(link: string): string {
  const address = link.replace(/[?#].*/s, '')
  return address
    .replace(/^(\s*(?:[a-z][a-z\d+.-]*:)?[/\\]*)[^/\\]*@/i, '$1')
    .replace(/([/\\]{2})[^/\\]*@/, '$1')
}

function namesOf(query: string): string {
  const parameters = [...new URLSearchParams(query)]
  const shown = parameters.map(([name, value]) => (name === 'page' ? `page=${printable(value, 20)}` : name))
  return printable(shown.join('&'))
}
