import type { PageObserver } from '../../../src/sync/types.ts'

export interface Observed {
  observer: PageObserver
  /** What was told, in order. */
  told: (string | number)[][]
}

export function createObserver(): Observed {
  const told: (string | number)[][] = []
  return {
    told,
    observer: {
      onRequest: () => told.push(['request']),
      onRetry: (reason, delayMs) => told.push(['retry', reason, delayMs]),
      onThrottled: () => told.push(['throttled']),
      onWait: (reason, until) => told.push(['wait', reason, until]),
      onWaited: (ms) => told.push(['waited', ms]),
    },
  }
}
