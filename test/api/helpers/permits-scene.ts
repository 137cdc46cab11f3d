import { decide } from '../../../src/api/rate/decision.ts'
import { createPermits, type Permit, type Permits } from '../../../src/api/rate/permits.ts'
import type { BudgetStore } from '../../../src/sync/types.ts'
import { NOTHING, NOW, RULES } from './budgets.ts'
import { createTestBudgetStore } from './stores.ts'

/** Two processes on one budget, and a clock that the test sets. */
export function createScene(changed = {}) {
  const store = createTestBudgetStore()
  const clock = { time: NOW }
  const rules = { ...RULES, ...changed }
  const open = (by: string, its: BudgetStore = store) =>
    createPermits({ scope: 'a', by, rules, store: its, now: () => clock.time })
  const wait = async (permits: Permits) => {
    const decision = decide(await permits.view(), rules, clock.time)
    await permits.noteWait(decision)
    return decision
  }
  return { store, clock, open, wait, one: open('one'), other: open('the other') }
}

/** A permit that must be there. */
export async function take(permits: Permits): Promise<Permit> {
  const permit = await permits.take()
  if (permit === null) throw new Error('there is no permit')
  return permit
}

/** One request and its answer. */
export async function request(permits: Permits, answer = NOTHING): Promise<void> {
  permits.answered(await take(permits), answer)
  await permits.publish()
}
