import type { Store, StoredShare } from '../store.ts'
import { charge, newShare, pass, type Share, type ShareRules } from './price.ts'

/** The share of one budget, as this process uses it beside others. */
export interface ShareUse {
  rules(): ShareRules
  /** By now, as far as this process knows: others may have charged it since. */
  known(): Share
  /** Takes what was read of it; null: no refresh has used it yet. */
  note(stored: StoredShare | null): void
  /** `longest`: the longest wait of a newest end for its time, in its own intervals; below 0: none is due. */
  noteWaits(waits: { isLate: boolean; longest: number }): void
  /** This wait as a part of the longest one that was noted. */
  partOfLongest(times: number): number
  /** Charges as many requests as `wanted` returns for the share as it stands now, and returns them. Who is killed leaves them charged. */
  take(wanted: (share: Share) => number): Promise<number>
}

export function createShareUse(
  store: Pick<Store, 'shares' | 'writeShare'>,
  scope: string,
  rules: () => ShareRules,
  now: () => number,
): ShareUse {
  let last: StoredShare | null = null
  let waits = { isLate: false, longest: 0 }
  const known = () => pass(last ?? newShare(now()), rules(), now(), waits.isLate)
  return {
    rules,
    known,
    note: (stored) => {
      last = stored
    },
    noteWaits: (noted) => {
      waits = noted
    },
    partOfLongest: (times) => (waits.longest > 0 ? Math.max(0, times) / waits.longest : 1),
    async take(wanted) {
      for (;;) {
        last = (await store.shares([scope]))[0] ?? null
        const share = known()
        const requests = wanted(share)
        if (requests === 0) return 0
        const next = { ...charge(share, rules(), requests), scope, version: (last?.version ?? 0) + 1 }
        if (!(await store.writeShare(next))) continue
        last = next
        return requests
      }
    },
  }
}
