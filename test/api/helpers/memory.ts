import type { GateMemory, KeptBudget } from '../../../src/api/rate-ledger.ts'
import type { HoldMemory } from '../../../src/api/token-guard.ts'

export const NOTHING_KEPT: KeptBudget = { closedUntil: 0, known: null, waitingFor: null, waitingUntil: 0 }

/** What the mirror keeps of budgets, in place of the mirror. */
export interface TestGateMemory extends GateMemory {
  /** Closes a gate as another process would. */
  close(scope: string, until: number): void
  /** How often something was written. */
  writes(): number
}

export function createGateMemory(): TestGateMemory {
  const budgets = new Map<string, KeptBudget>()
  let writes = 0
  const read = (scope: string) => budgets.get(scope) ?? NOTHING_KEPT
  return {
    read,
    change: async (scope, change) => {
      const { keep, result } = change(read(scope))
      budgets.set(scope, keep)
      writes++
      return result
    },
    close: (scope, until) => void budgets.set(scope, { ...read(scope), closedUntil: until }),
    writes: () => writes,
  }
}

/** What the mirror keeps of a refused token, in place of the mirror. */
export function createHoldMemory(reason: string | null = null): HoldMemory {
  let held = reason
  return {
    heldReason: () => held,
    hold: async (why) => {
      held = why
    },
    lift: async () => {
      held = null
    },
  }
}
