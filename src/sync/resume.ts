import { sortedJson } from '../json/value.ts'
import { jobName } from '../text.ts'
import { READING_VERSION, WalkReading } from './coverage/read-list.ts'
import type { OpenWalk, Store } from './store.ts'
import type { Filters, Job, WalkPlan } from './types.ts'

// Which walk a run resumes, and how. At which page it goes on, its reading decides (coverage/read-pass.ts).

/** Returns the filters as text, sorted: two walks with the same text read the same list. */
export function filtersText(filters: Filters): string {
  return sortedJson(filters)
}

export interface WalkChoice {
  /** The walk to resume; null: begin a new one. */
  resume: OpenWalk | null
  /** Walks of the same origin that no run can resume. */
  abandon: number[]
}

/** Chooses which of a job's open walks a run resumes. A sync and a backfill never resume each other's walks. */
export function chooseWalk(open: readonly OpenWalk[], plan: WalkPlan, job: Job, now: number): WalkChoice {
  const { origin, kind, firstPage, resumeWithin, restart } = plan
  const { path, filters } = job.collection
  const isSame = (walk: OpenWalk) =>
    walk.kind === kind &&
    walk.firstPage === firstPage &&
    walk.path === path &&
    walk.filters === filtersText(filters)
  const isFresh = ({ updatedAt, rules }: OpenWalk) =>
    rules.version === READING_VERSION && (resumeWithin === null || now - updatedAt <= resumeWithin)
  const own = open.filter((walk) => walk.origin === origin && (origin === 'sync' || isSame(walk)))
  const resume = restart ? null : (own.findLast((walk) => isSame(walk) && isFresh(walk)) ?? null)
  return { resume, abandon: own.filter((walk) => walk !== resume).map(({ id }) => id) }
}

interface ReplayOptions {
  job: Job
  store: Pick<Store, 'readLedger'>
  yieldToEventLoop: () => Promise<void>
  signal: AbortSignal
}

/**
 * Plays the stored answers of an open walk through its reading again. Returns null if it would have asked for other pages: the walk has to
 * begin again.
 */
export async function replay(
  { id, rules }: Pick<OpenWalk, 'id' | 'rules'>,
  { job, store, yieldToEventLoop, signal }: ReplayOptions,
): Promise<WalkReading | null> {
  const reading = new WalkReading(rules, jobName(job))
  for (;;) {
    const answers = await store.readLedger(id, reading.answers)
    if (answers.length === 0) return reading
    for (const { at, resumed, ordinal: _ordinal, pass: _pass, why, ...answer } of answers) {
      if (resumed) reading.resume()
      if (reading.question?.page !== answer.page || reading.question.why !== why) return null
      reading.take(answer, at)
    }
    await yieldToEventLoop()
    signal.throwIfAborted()
  }
}
