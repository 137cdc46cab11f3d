import type { Organization } from './organizations.ts'

/** What people let happen to an organization, to see what their mirror says of it. */
export interface Accidents {
  isRevoked: (organization: Organization) => boolean
  /** The orders below this index are gone. */
  firstOrder: (organization: Organization) => number
  /** Says what happened; null where nothing of that name can happen. */
  cause: (organization: Organization, name: string) => string | null
}

/** @param middleOf The index of the order in the middle of what is listed. */
export function createAccidents(middleOf: (organization: Organization) => number): Accidents {
  const revoked = new Set<Organization>()
  const firstOrders = new Map<Organization, number>()
  return {
    isRevoked: (organization) => revoked.has(organization),
    firstOrder: (organization) => firstOrders.get(organization) ?? 0,
    cause(organization, name) {
      if (name === 'revoke') {
        revoked.add(organization)
        return 'its token is refused from now on'
      }
      if (name === 'remove') {
        firstOrders.set(organization, middleOf(organization))
        return 'the older half of its orders is gone'
      }
      if (name !== 'restore') return null
      revoked.delete(organization)
      firstOrders.delete(organization)
      return 'its token is accepted, and its orders are back'
    },
  }
}
