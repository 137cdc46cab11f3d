import type { HoldStore } from '../../../src/api/token-hold.ts'
import type { BudgetStore, StoredBudget } from '../../../src/sync/types.ts'

const NOTHING_KEPT: StoredBudget = { closedUntil: 0, known: null, waitingFor: null, waitingUntil: 0 }

/** Keeps budgets in memory, as the mirror does in its file. */
export interface TestBudgetStore extends BudgetStore {
  kept(scope: string): StoredBudget
  /** Writes, as another process would. */
  change(scope: string, changed: Partial<StoredBudget>): void
  /** Writes, and writes that were refused since another process had written. */
  writes(): number
  conflicts(): number
}

export function createTestBudgetStore(): TestBudgetStore {
  const budgets = new Map<string, { kept: StoredBudget; version: number }>()
  let writes = 0
  let conflicts = 0
  const find = (scope: string) => budgets.get(scope) ?? { kept: NOTHING_KEPT, version: 0 }
  const set = (scope: string, kept: StoredBudget) =>
    void budgets.set(scope, { kept, version: find(scope).version + 1 })
  return {
    read: async (scope) => {
      const { kept, version } = find(scope)
      return { closedUntil: kept.closedUntil, known: kept.known, version: String(version) }
    },
    compareAndSet: async (scope, version, next) => {
      // A server is asked with what is to be written, a file only once its lock is held: the worse of both.
      const written = next()
      if (version !== String(find(scope).version)) {
        conflicts++
        return null
      }
      set(scope, written)
      writes++
      return String(find(scope).version)
    },
    kept: (scope) => find(scope).kept,
    change: (scope, changed) => set(scope, { ...find(scope).kept, ...changed }),
    writes: () => writes,
    conflicts: () => conflicts,
  }
}

/** Keeps the hold of a token in memory, as the mirror does in its file. */
export function createHoldStore(reason: string | null = null): HoldStore & { lift(): void } {
  let held = reason
  return {
    heldReason: () => held,
    refresh: async () => {},
    hold: async (why) => {
      held = why
    },
    lift: () => {
      held = null
    },
  }
}
