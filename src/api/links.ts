import type { Filters } from '../sync/types.ts'
import { grouped, printable } from '../text.ts'

/** Servers refuse longer request lines, so a longer link cannot lead to a page. */
const LONGEST_BYTES = 8192

/** What `links.next` must agree with. */
export interface LinkRules {
  /** `api.baseUrl`, which may carry a path prefix. */
  baseUrl: string
  /** The collection's path, without that prefix. */
  path: string
  filters: Filters
  /** More host names that a link may have. */
  linkHosts: readonly string[]
}

export type LinkVerdict = { page: number } | { refused: string }

/** Returns the page that a `links.next` leads to, or why the link is refused. */
export type LinkReader = (link: string, currentPage: number) => LinkVerdict

/** The rules as every link of a list is compared with them, computed once. */
interface Expected {
  /** Relative links start here. */
  base: string
  hosts: readonly string[]
  paths: readonly string[]
  filters: ReadonlyMap<string, readonly string[]>
}

/** A page is always requested at `baseUrl`: a wrong link may stop a walk, but cannot divert the token. */
export function createLinkReader(rules: LinkRules): LinkReader {
  const expected = expectedOf(rules)
  return (link, currentPage) => {
    const bytes = Buffer.byteLength(link)
    if (bytes > LONGEST_BYTES)
      return {
        refused: `links.next is ${grouped(bytes)} bytes long, and more than ${grouped(LONGEST_BYTES)} are not read`,
      }
    const url = URL.parse(link, expected.base)
    if (url?.protocol !== 'http:' && url?.protocol !== 'https:')
      return { refused: 'links.next is not an http or https address' }
    // Scheme and port are not compared: behind a proxy that ends TLS, a server writes its own into links.
    if (!expected.hosts.includes(url.hostname)) {
      return refuse(
        `leads to another host, ${printable(url.hostname, 80)}; if it is the same service, add it to api.linkHosts`,
        url,
      )
    }
    if (!expected.paths.includes(withoutSlash(url.pathname)))
      return refuse(`leads to another path, ${printable(url.pathname, 80)}`, url)
    const query = valuesByName(url.searchParams)
    const changed = changedFilter(query, expected.filters)
    if (changed) return refuse(changed, url)
    return pageOf(query.get('page') ?? [], currentPage, url)
  }
}

function expectedOf({ baseUrl, path, filters, linkHosts }: LinkRules): Expected {
  const base = new URL(baseUrl)
  const prefix = withoutSlash(base.pathname)
  base.pathname = prefix + path
  return {
    base: base.href,
    hosts: [base.hostname, ...linkHosts.map((host) => host.toLowerCase())],
    // Through URL as well, so that both sides are encoded alike.
    paths: [prefix + path, path].map((one) => withoutSlash(new URL(one, baseUrl).pathname)),
    filters: valuesByName(filterQuery(filters)),
  }
}

/** The address of a page: the filters in the order of the configuration, then the page. */
export function pageAddress({ baseUrl, path, filters }: Omit<LinkRules, 'linkHosts'>, page: number): URL {
  const query = filterQuery(filters)
  query.append('page', String(page))
  return new URL(`${baseUrl}${path}?${query.toString()}`)
}

function filterQuery(filters: Filters): URLSearchParams {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(filters)) {
    for (const one of Array.isArray(value) ? value : [value]) query.append(name, one)
  }
  return query
}

function withoutSlash(path: string): string {
  return path.endsWith('/') ? path.slice(0, -1) : path
}

/**
 * The values of each parameter, sorted. Servers write `state[]` back as `state[0]`, `state[1]`, so an index
 * at the end of a name is dropped.
 */
function valuesByName(parameters: Iterable<[string, string]>): Map<string, string[]> {
  const query = new Map<string, string[]>()
  for (const [name, value] of parameters) {
    const plain = name.replace(/\[\d+\]$/, '[]')
    const values = query.get(plain)
    if (values) values.push(value)
    else query.set(plain, [value])
  }
  for (const values of query.values()) values.sort()
  return query
}

function changedFilter(
  query: ReadonlyMap<string, readonly string[]>,
  filters: Expected['filters'],
): string | null {
  for (const [name, values] of filters) {
    const found = query.get(name) ?? []
    // Servers leave empty values out of their links.
    const filled = values.filter((value) => value !== '')
    if (isSameList(found, values) || isSameList(found, filled)) continue
    const shown = printable(name, 80)
    return `${query.has(name) ? 'changes' : 'drops'} the filter ${shown}`
  }
  return null
}

function isSameList(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((value, index) => value === other[index])
}

function pageOf(values: string[], currentPage: number, url: URL): LinkVerdict {
  const [text] = values
  if (values.length > 1) return refuse('names two pages', url)
  // Only a plain number: PHP reads 02 or 2.0 as page 1.
  if (text === undefined || !/^(?:0|[1-9]\d*)$/.test(text)) return refuse('names no page', url)
  const page = currentPage + 1
  if (text !== String(page) || !Number.isSafeInteger(page))
    return refuse(`leads from page ${currentPage} to page ${printable(text, 20)}`, url)
  return { page }
}

function refuse(reason: string, url: URL): LinkVerdict {
  return { refused: `links.next ${reason} (${shownLink(url)})` }
}

/**
 * The link as it may be shown: of the query only the names and the page, since servers copy what they were
 * sent into it; no user information, which may be a password, and no fragment.
 */
function shownLink({ origin, pathname, searchParams }: URL): string {
  const names = [...searchParams].map(([name, value]) =>
    name === 'page' ? `page=${printable(value, 20)}` : name,
  )
  return printable(origin + pathname) + (names.length === 0 ? '' : `?${printable(names.join('&'))}`)
}
