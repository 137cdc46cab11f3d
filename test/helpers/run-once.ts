import { type JobEvent, type JobOptions, runJob } from '../../src/sync/job.ts'
import { createShareUse, type RefreshPolicy } from '../../src/sync/refresh/share.ts'
import type { Observe, PageSource } from '../../src/sync/types.ts'
import { jobOf } from './jobs.ts'
import { type Script, scriptedList } from './scripted-list.ts'
import { openTestMirror, SYNC, type TestMirror } from './test-mirror.ts'

type Heard = { [K in JobEvent['kind']]?: (event: Extract<JobEvent, { kind: K }>) => unknown }

/** Hears what happens while a job runs, and tells of these kinds of events. */
export function hearing(heard: Heard = {}): Observe<JobEvent> {
  return (event) => {
    const tell = heard[event.kind] as ((event: JobEvent) => unknown) | undefined
    tell?.(event)
  }
}

/** A mirror of either store. */
type AnyMirror = Pick<TestMirror, 'store' | 'clock'>

/** What it takes to run the orders of acme by hand, or what is said instead. */
export function jobOptions(
  { store, clock }: AnyMirror,
  source: PageSource,
  changed: Partial<JobOptions> = {},
): JobOptions {
  return {
    job: jobOf(),
    plan: SYNC,
    trigger: 'manual',
    source: async () => source,
    store,
    maxPasses: 3,
    removals: { brakePercent: 20, brakeRows: 10, accept: false },
    waitForOwner: false,
    refresh: null,
    now: clock.now,
    sleep: clock.sleep,
    yieldToEventLoop: async () => {},
    observe: hearing(),
    signal: new AbortController().signal,
    ...changed,
  }
}

export function runOnce(test: AnyMirror, { source }: { source: PageSource }, changed?: Partial<JobOptions>) {
  return runJob(jobOptions(test, source, changed))
}

/** How a list is refreshed that has its budget, of 60 requests a minute, for itself: its newest end each hour. */
export function policyOf({ store, clock }: AnyMirror, every = 3_600_000): RefreshPolicy {
  const share = createShareUse(store, 'token', { limit: () => 60, percent: 100 }, clock.now)
  return { every, share, others: () => [], note: () => {} }
}

/** A run over this list into a mirror of its own. */
export async function walkOver(script: Script, changed?: Partial<JobOptions>) {
  const test = openTestMirror()
  const list = scriptedList(script)
  return { test, list, result: await runOnce(test, list, changed) }
}

/** The ids that the mirror holds, in their order. */
export function mirroredIds(test: TestMirror): unknown[] {
  const isMade = test.value(`SELECT count(*) FROM sqlite_schema WHERE name = 'orders'`) === 1
  return isMade ? test.rows('SELECT id FROM orders ORDER BY id').map(({ id }) => id) : []
}

/** The walks of the mirror, the oldest first. */
export function walks(test: TestMirror) {
  return test.rows('SELECT * FROM sync_walks ORDER BY id')
}

export function runs(test: TestMirror) {
  return test.rows('SELECT * FROM sync_runs ORDER BY id')
}
