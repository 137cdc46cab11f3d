import { BlockList, isIP } from 'node:net'

const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4')
LOOPBACK.addAddress('::1', 'ipv6')

/**
 * Whether a host (without brackets and port) is this machine itself: an IP address of 127.0.0.0/8, ::1, or the name `localhost`.
 * No other name is, however it begins: `127.evil.example` leads where its owner wants.
 */
export function isLoopback(host: string): boolean {
  const version = isIP(host)
  if (version === 0) return /^localhost\.?$/i.test(host)
  return LOOPBACK.check(host, version === 4 ? 'ipv4' : 'ipv6')
}
