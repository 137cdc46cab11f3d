import { randomBytes } from 'node:crypto'
import { createLeases, type LeaseOptions, type Leases } from '../../src/store/core/leases.ts'

const randomHex = () => randomBytes(16).toString('hex')

/** The leases of a process of which nobody knows whether it lives, and that is heard only when a test says so. */
export function testLeases(
  runner: LeaseOptions['runner'],
  options: Partial<LeaseOptions> = {},
): Leases & { name: string } {
  const name = options.name ?? `machine-${process.pid}-${randomHex().slice(0, 12)}`
  const leases = createLeases({
    runner,
    now: Date.now,
    elapsed: () => performance.now(),
    sleep: async () => {},
    every: () => () => {},
    isAlive: () => null,
    randomHex,
    ...options,
    name,
  })
  return { ...leases, name }
}
