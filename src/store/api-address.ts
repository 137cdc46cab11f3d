/** What a mirror remembers of `api.baseUrl`: a proxy in front of an API changes scheme and port, and the API stays the same. */
export function addressOf(baseUrl: string): string {
  const { hostname, pathname } = new URL(baseUrl)
  return hostname.replace(/\.$/, '') + pathname.replace(/\/+$/, '')
}
