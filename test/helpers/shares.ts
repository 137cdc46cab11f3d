import { createShareUse, type RefreshPolicy, type ShareUse } from '../../src/sync/refresh/share.ts'
import type { StoredShare } from '../../src/sync/store.ts'

/** A share that one test alone uses, kept in memory. */
export function shareOf(now: () => number, { limit = 6000, percent = 100 } = {}): ShareUse {
  const stored: StoredShare[] = []
  return createShareUse(
    {
      shares: async (keys) => stored.filter(({ budgetKey }) => keys.includes(budgetKey)),
      async writeShare(share) {
        const known = stored.findIndex(({ budgetKey }) => budgetKey === share.budgetKey)
        if ((stored[known]?.version ?? 0) !== share.version - 1) return false
        stored.splice(known < 0 ? stored.length : known, 1, share)
        return true
      },
    },
    'token',
    { limit: () => limit, percent },
    now,
  )
}

/** How a list is refreshed that has its budget for itself: its newest end each hour, and a walk a day. */
export function policyOf(now: () => number, more: Partial<RefreshPolicy> = {}): RefreshPolicy {
  return {
    every: 3_600_000,
    walkEvery: 86_400_000,
    share: shareOf(now, { limit: 60 }),
    others: () => [],
    note: () => {},
    ...more,
  }
}
