import type { PageObserver } from '../../../src/sync/types.ts'

export interface Observed {
  observer: PageObserver
  /** All reports, in order. */
  reports: (string | number)[][]
}

export function createObserver(): Observed {
  const reports: (string | number)[][] = []
  return {
    reports,
    observer: {
      onRequest: () => reports.push(['request']),
      onRetry: (reason, delayMs) => reports.push(['retry', reason, delayMs]),
      onThrottled: () => reports.push(['throttled']),
      onWait: (reason, until) => reports.push(['wait', reason, until]),
      onWaited: (ms) => reports.push(['waited', ms]),
    },
  }
}
