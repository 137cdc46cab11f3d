import type { Store, StoredShare } from '../store.ts'
import type { RefreshState } from './state.ts'
import { levelAt, shareOf, type SharingList } from './worth.ts'

/** How a job is refreshed, and with what: what the configuration says, and what is known of its budget. */
export interface RefreshPolicy extends Pick<SharingList, 'every'> {
  share: ShareUse
  /** The other lists with its budget, as this process knows them. */
  others(): SharingList[]
  /** Notes what is known of the job, so that the others know it. */
  note(state: RefreshState): void
}

/** What refreshes may use of one budget, as this process uses it beside others. */
export type ShareUse = ReturnType<typeof createShareUse>

/** @param limit Of the budget. */
export function createShareUse(
  store: Pick<Store, 'shares' | 'writeShare'>,
  budgetKey: string,
  { limit, percent }: { limit: () => number | null; percent: number },
  now: () => number,
) {
  let last: StoredShare | null = null
  const perMinute = () => shareOf(limit(), percent)
  /** As far as this process knows: others may have charged it since. */
  const level = () => (last ? levelAt(last, perMinute(), now()) : 0)
  return {
    perMinute,
    level,
    /** Notes the stored share; null: no refresh has used this budget yet. */
    note(stored: StoredShare | null) {
      last = stored
    },
    /**
     * Decides by the stored level, and charges what was decided: one request, of which a process that is killed leaves it charged; nothing for
     * null. Less than 0 takes back what was charged and not sent.
     */
    async take<T>(decide: (level: number) => T | null, requests = 1): Promise<T | null> {
      for (;;) {
        last = (await store.shares([budgetKey]))[0] ?? null
        const before = level()
        const decided = decide(before)
        if (decided === null) return null
        const charged = Math.max(0, before + requests)
        const next = { budgetKey, at: now(), level: charged, version: (last?.version ?? 0) + 1 }
        if (!(await store.writeShare(next))) continue
        last = next
        return decided
      }
    },
  }
}
