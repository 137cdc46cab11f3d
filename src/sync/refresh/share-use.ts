import type { Store, StoredShare } from '../store.ts'
import { charge, newShare, pass, type Share, type ShareRules } from './price.ts'

/** The share of one budget, as this process uses it beside others. */
export interface ShareUse {
  /** By now, as far as this process knows: others may have charged it since. */
  known(rules: ShareRules): Share
  /** Takes what was read of it; null: no refresh has used it yet. */
  note(stored: StoredShare | null): void
  /** Whether something that is due waits for longer than LATE_MS. */
  noteLate(isLate: boolean): void
  /**
   * Charges what `wanted` returns for the share as it stands now. Of 0 nothing is written. A process that is killed leaves it charged.
   * @returns The requests that may be sent.
   */
  take(rules: ShareRules, wanted: (share: Share) => number): Promise<number>
  /** Charges what was sent beyond what was charged, or less. */
  settle(rules: ShareRules, requests: number): Promise<void>
}

export function createShareUse(
  store: Pick<Store, 'shares' | 'writeShare'>,
  scope: string,
  now: () => number,
): ShareUse {
  let last: StoredShare | null = null
  let isLate = false

  const known = (rules: ShareRules) => pass(last ?? newShare(now()), rules, now(), isLate)

  async function take(rules: ShareRules, wanted: (share: Share) => number): Promise<number> {
    for (;;) {
      last = (await store.shares([scope]))[0] ?? null
      const share = known(rules)
      const requests = wanted(share)
      if (requests === 0) return 0
      const next = { ...charge(share, rules, requests), scope, version: (last?.version ?? 0) + 1 }
      if (!(await store.writeShare(next))) continue
      last = next
      return requests
    }
  }

  return {
    known,
    note: (stored) => {
      last = stored
    },
    noteLate: (late) => {
      isLate = late
    },
    take,
    settle: async (rules, requests) => {
      await take(rules, () => requests)
    },
  }
}
