import { sortedJson } from '../text.ts'
import { createSeenItems, type SeenItems } from './seen/seen-items.ts'
import type { OpenWalk, Store, Walk } from './store.ts'
import type { Filters, Job, WalkPlan } from './types.ts'

/** Filters as one text, whatever order they were written in: two walks with the same text read the same list. */
export function filtersText(filters: Filters): string {
  return sortedJson(filters)
}

export interface WalkChoice {
  /** The walk to go on with, or null to begin a new one. */
  resume: number | null
  /** The job's own walks that nobody can go on with. */
  abandon: number[]
  /** Walks that this one takes the place of, as soon as it has its first page: until then they may still be needed. */
  replace: OpenWalk[]
}

/**
 * Which of a job's open walks a run goes on with. A sync and a backfill never go on with each other's; a full backfill
 * takes the place of a sync's walk, since it reads the same list from its beginning, and a partial one leaves it alone.
 */
export function chooseWalk(open: readonly OpenWalk[], plan: WalkPlan, job: Job, now: number): WalkChoice {
  const { resumeWithin, restart } = plan
  const isFresh = (walk: OpenWalk) => resumeWithin === null || now - walk.updatedAt <= resumeWithin
  const own = open.filter(
    (walk) => walk.origin === plan.origin && (plan.origin === 'sync' || isSameWalk(walk, plan, job)),
  )
  const resumed = restart ? undefined : own.findLast((walk) => isSameWalk(walk, plan, job) && isFresh(walk))
  const replaced =
    plan.origin === 'backfill' && plan.kind === 'full' ? open.filter((walk) => walk.origin === 'sync') : []
  const abandoned = own.filter((walk) => walk !== resumed)
  return {
    resume: resumed?.id ?? null,
    abandon: abandoned.map(({ id }) => id),
    replace: replaced,
  }
}

function isSameWalk(walk: OpenWalk, plan: WalkPlan, job: Job): boolean {
  const { path, filters } = job.collection
  return (
    walk.kind === plan.kind &&
    walk.firstPage === plan.firstPage &&
    walk.path === path &&
    walk.filters === filtersText(filters)
  )
}

/** What one reading of the page ledger takes. */
export interface RecallOptions {
  store: Pick<Store, 'readLedger'>
  yieldToEventLoop: () => Promise<void>
  signal: AbortSignal
}

/** Recalls what a walk has seen from its page ledger, and lets the rest of the process work in between. */
export async function recallSeenItems(
  walk: Pick<Walk, 'id' | 'resumed'>,
  { store, yieldToEventLoop, signal }: RecallOptions,
): Promise<SeenItems> {
  const seen = createSeenItems(walk.id)
  if (!walk.resumed) return seen
  for (;;) {
    const answers = await store.readLedger(walk.id, seen.answers)
    if (answers.length === 0) return seen
    for (const entry of answers) seen.add(entry)
    await yieldToEventLoop()
    signal.throwIfAborted()
  }
}
