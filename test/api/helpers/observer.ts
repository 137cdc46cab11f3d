import type { Observe, RequestEvent } from '../../../src/sync/types.ts'

export interface Observed {
  observe: Observe<RequestEvent>
  /** All events, in order, without the names of their fields. */
  reports: (string | number)[][]
}

export function createObserver(): Observed {
  const reports: (string | number)[][] = []
  return { reports, observe: (event) => reports.push(Object.values(event)) }
}
