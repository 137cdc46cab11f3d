import type { GateMemory } from '../../../src/api/rate-gate.ts'
import type { HoldMemory } from '../../../src/api/token-guard.ts'

/** What the mirror keeps of pauses, in place of the mirror. */
export function createGateMemory(): GateMemory {
  const pauses = new Map<string, number>()
  return {
    closedUntil: (scope) => pauses.get(scope) ?? 0,
    close: async (scope, until) => void pauses.set(scope, until),
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
