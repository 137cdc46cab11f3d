import type { CompleteWalk } from '../../src/sync/refresh/state.ts'

/** A complete full walk of 1,000 rows, the first one, or what is said instead: what refreshes begin with. */
export function fullWalk(changed: Partial<CompleteWalk> = {}): CompleteWalk {
  const times = { startedAt: 100, endedAt: 200, grewAt: null }
  const totals = { first: 1000, last: 1000 }
  const rowsAdded = { first: 0, last: 1000 }
  return { scope: 'orders', ...times, lastPage: 40, totals, rowsAdded, coverage: 'steady', ...changed }
}
