import { isLoopback } from '../loopback.ts'

/**
 * Whether a request to a listener on loopback names a host that leads to loopback. A page on the web can have its own name
 * resolved to 127.0.0.1, and would then read our answers as its own; its requests carry that name.
 */
export function isLoopbackHost(host: string): boolean {
  const [, name = ''] = /^(\[[0-9a-f:.]+\]|[^:]*)(?::\d{1,5})?$/i.exec(host) ?? []
  return isLoopback(name.replace(/^\[(.*)\]$/, '$1'))
}
