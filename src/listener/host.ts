/** Whether an address that a socket is bound to is reached from this machine alone. */
export function isLoopback(address: string): boolean {
  return /^(?:::ffff:)?127\./i.test(address) || address === '::1'
}

/**
 * Whether a request to a listener on loopback names a host that leads to loopback. A page on the web can have its own name
 * resolved to 127.0.0.1, and would then read our answers as its own; its requests carry that name.
 */
export function isLoopbackHost(host: string): boolean {
  const [, name = ''] = /^(\[[0-9a-f:.]+\]|[^:]*)(?::\d{1,5})?$/i.exec(host) ?? []
  const plain = name
    .toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '')
  if (plain === 'localhost' || plain.endsWith('.localhost') || plain === '::1') return true
  return /^(?:::ffff:)?127(?:\.\d{1,3}){3}$/.test(plain)
}
