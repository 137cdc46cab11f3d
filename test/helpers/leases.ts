import { randomBytes } from 'node:crypto'
import { createLeases, type LeaseOptions, type Leases } from '../../src/store/core/leases.ts'

const randomHex = () => randomBytes(16).toString('hex')

/** A name that no other process has. */
export function ownName(): string {
  return `machine-${process.pid}-${randomHex().slice(0, 12)}`
}

/** The leases of a process of which nobody knows whether it lives, and that is heard only when a test says so. */
export function testLeases(
  runner: LeaseOptions['runner'],
  options: Partial<LeaseOptions> = {},
): Leases & { name: string } {
  const name = options.name ?? ownName()
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
