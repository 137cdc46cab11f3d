import type { Store, StoredShare } from '../store.ts'
import { agedShare, charge, newShare, type Share, type ShareRules } from './price.ts'

/** The share of one budget, as this process uses it beside others. */
export type ShareUse = ReturnType<typeof createShareUse>

export function createShareUse(
  store: Pick<Store, 'shares' | 'writeShare'>,
  budgetKey: string,
  rules: () => ShareRules,
  now: () => number,
) {
  let last: StoredShare | null = null
  let waits = { isLate: false, mostUrgent: 0 }
  /** The share now, as far as this process knows: others may have charged it since. */
  const known = () => agedShare(last ?? newShare(now()), rules(), now(), waits.isLate)
  return {
    rules,
    known,
    /** Notes the stored share; null: no refresh has used this budget yet. */
    note(stored: StoredShare | null) {
      last = stored
    },
    /** `mostUrgent`: how urgent the most urgent newest end is that is due. */
    noteWaits(noted: typeof waits) {
      waits = noted
    },
    /** This urgency as a part of `mostUrgent`. */
    partOfMost: (urgency: number) => (waits.mostUrgent > 0 ? urgency / waits.mostUrgent : 1),
    /** Charges as many requests as `wanted` returns for the stored share, and returns them. A process that is killed leaves them charged. */
    async take(wanted: (share: Share) => number): Promise<number> {
      for (;;) {
        last = (await store.shares([budgetKey]))[0] ?? null
        const share = known()
        const requests = wanted(share)
        if (requests === 0) return 0
        const next = { ...charge(share, rules(), requests), budgetKey, version: (last?.version ?? 0) + 1 }
        if (!(await store.writeShare(next))) continue
        last = next
        return requests
      }
    },
  }
}
