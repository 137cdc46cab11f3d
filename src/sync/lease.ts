import { JobError } from '../errors.ts'
import { jobName } from '../text.ts'
import type { JobOptions } from './job.ts'
import { type OwnerWork, ownerName, workText } from './owner-work.ts'
import { stopError } from './run-record.ts'
import type { Lease, Store } from './store.ts'
import type { Observe } from './types.ts'

// How often to check whether another process has released the job: each look takes the mirror's lock for a moment.
const FIRST_LOOK_MS = 250
const LONGEST_LOOK_MS = 2000
/** The pause as a part of the time waited so far: a wait of hours needs no look four times a second. */
const LOOK_SHARE = 0.05

/** Another process has the job; this one waits for its end, and says so at each look. `owner`: the name of its lock. */
export interface BusyEvent {
  kind: 'busy'
  owner: string
  work: OwnerWork | null
}

interface AcquireOptions
  extends Pick<JobOptions, 'job' | 'waitForOwner' | 'now' | 'sleep' | 'signal'>,
    Partial<Pick<JobOptions, 'trigger'>> {
  store: Pick<Store, 'acquire'>
  observe: Observe<BusyEvent>
}

/** Takes the job, or waits until its owner finishes or dies. Throws BUSY if the caller does not want to wait. */
export async function acquire(options: AcquireOptions): Promise<Lease> {
  const { job, store, waitForOwner, trigger, now, sleep, observe, signal } = options
  let waitedMs = 0
  for (;;) {
    if (signal.aborted) throw stopError(signal)
    const { lease, heldBy, work = null } = await store.acquire(job)
    if (lease) return lease
    if (!waitForOwner) {
      const place = jobName(job)
      const owner = `${ownerName(heldBy, work)} ${workText(work, now())}`
      const then =
        trigger === 'schedule' ? 'the next scheduled run tries again' : '--wait waits until that is done'
      throw new JobError('BUSY', `${place}: ${owner}; nothing is wrong, and ${then}`)
    }
    observe({ kind: 'busy', owner: heldBy, work })
    const pauseMs = Math.min(Math.max(FIRST_LOOK_MS, waitedMs * LOOK_SHARE), LONGEST_LOOK_MS)
    await sleep(pauseMs, signal)
    waitedMs += pauseMs
  }
}
