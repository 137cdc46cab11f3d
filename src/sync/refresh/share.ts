import type { Store, StoredShare } from '../store.ts'
import type { RefreshState } from './state.ts'
import { agedShare, type Share, type ShareRules, type SharingList } from './worth.ts'

/** How a job is refreshed, and with what: what the configuration says, and what is known of its budget. */
export interface RefreshPolicy extends Pick<SharingList, 'every' | 'walkEvery'> {
  share: ShareUse
  /** The other lists with its budget, as this process knows them. */
  others(): SharingList[]
  /** Notes what is saved of the job, so that the others know it. */
  note(state: RefreshState): void
}

/** The share of one budget, as this process uses it beside others. */
export type ShareUse = ReturnType<typeof createShareUse>

export function createShareUse(
  store: Pick<Store, 'shares' | 'writeShare'>,
  budgetKey: string,
  rules: () => ShareRules,
  now: () => number,
) {
  let last: StoredShare | null = null
  /** The share now, as far as this process knows: others may have charged it since. */
  const known = (): Share => agedShare(last ?? { at: now(), level: 0 }, rules(), now())
  return {
    rules,
    known,
    /** Notes the stored share; null: no refresh has used this budget yet. */
    note(stored: StoredShare | null) {
      last = stored
    },
    /**
     * Decides by the stored share, and charges the `cost` of what was decided; nothing for null. A cost below 0 takes back what was charged
     * and not sent. A process that is killed leaves it charged.
     */
    async take<T extends { cost: number }>(decide: (share: Share) => T | null): Promise<T | null> {
      for (;;) {
        last = (await store.shares([budgetKey]))[0] ?? null
        const share = known()
        const decided = decide(share)
        if (decided === null || decided.cost === 0) return decided
        const level = Math.max(0, share.level + decided.cost)
        const next = { at: share.at, level, budgetKey, version: (last?.version ?? 0) + 1 }
        if (!(await store.writeShare(next))) continue
        last = next
        return decided
      }
    },
  }
}
