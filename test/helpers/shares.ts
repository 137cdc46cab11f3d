import { createShareUse, type ShareUse, shareRules } from '../../src/sync/refresh/price.ts'
import type { StoredShare } from '../../src/sync/store.ts'

/** A share that one test alone uses, kept in memory. */
export function shareOf(now: () => number, { price = 100, limit = 6000, percent = 100 } = {}): ShareUse {
  const stored: StoredShare[] = [
    { budgetKey: 'token', at: now(), level: 0, logPrice: Math.log(price), version: 1 },
  ]
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
    () => shareRules(limit, percent),
    now,
  )
}
