import type { JobResult } from '../../src/sync/job.ts'
import { jobOf } from '../helpers/jobs.ts'

/** What a run did that has read a page. */
export const RAN: JobResult['run'] = {
  pages: 1,
  rowsSeen: 25,
  rowsAdded: 0,
  rowsChanged: 0,
  rowsRemoved: 0,
  requests: 1,
  retries: 0,
  rateLimitHits: 0,
  rateLimitWaitMs: 0,
}

/** How a scheduled run of the orders of this organization ended: well, and without a line in `sync_runs`. */
export function resultOf(organization: string, changed: Partial<JobResult> = {}): JobResult {
  return {
    job: { ...jobOf(), organization: { id: organization, name: organization } },
    trigger: 'schedule',
    walk: null,
    run: null,
    isInstead: false,
    items: 0,
    error: null,
    coverage: null,
    untrusted: null,
    heldBack: null,
    ...changed,
  }
}

/** How a refresh that has read a page ended. */
export function refreshOf(organization: string, changed: Partial<JobResult> = {}): JobResult {
  return resultOf(organization, { trigger: 'refresh', isInstead: true, run: RAN, ...changed })
}
