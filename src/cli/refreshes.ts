import type { Config } from '../config/config.ts'
import type { OrganizationConfig } from '../config/organizations.ts'
import { periodOf } from '../schedule/cron.ts'
import type { ScheduledJob, Scheduler } from '../schedule/scheduler.ts'
import { keepChanges } from '../sync/refresh/changed-since.ts'
import { dueLists, type KnownList, type Reads, type RefreshPolicy } from '../sync/refresh/due.ts'
import { createShareUse, type ShareUse, shareRules, turnOf } from '../sync/refresh/price.ts'
import { type RefreshState, scopeText, stateOf } from '../sync/refresh/state.ts'
import type { Store } from '../sync/store.ts'
import type { PageSource } from '../sync/types.ts'
import { jobKey } from '../text.ts'
import type { Runtime } from './runtime.ts'
import type { SelectedJob } from './selection.ts'

export type RefreshPlan = ReturnType<typeof createRefreshPlan>

export interface PlannedList extends Pick<KnownList<unknown>, 'failed' | 'isRead'> {
  selected: SelectedJob
}

export interface RefreshPlanOptions {
  config: Config
  store: Pick<Store, 'refreshes' | 'shares' | 'writeShare'>
  /** The key of an organization's rate budget. */
  budgetOf(organization: OrganizationConfig): string
  now: () => number
}

/**
 * Every run needs the states of all lists. With more than FEW_LISTS they are read at most once in READ_EVERY_MS_A_LIST for each list, so that
 * reading them does not take a growing part of the time.
 */
const FEW_LISTS = 100
const READ_EVERY_MS_A_LIST = 2

/** What the lists of a configuration share for refreshes, and which of them are due. */
export function createRefreshPlan({ config, store, budgetOf, now }: RefreshPlanOptions) {
  let states = new Map<string, RefreshState>()
  const budgets = new Map(config.organizations.map((one) => [one.id, budgetOf(one)]))
  const keyOf = ({ id }: OrganizationConfig) => budgets.get(id) ?? id
  const listsOf = new Map<string, number>()
  for (const one of config.organizations.filter(({ refresh }) => refresh !== false))
    listsOf.set(keyOf(one), (listsOf.get(keyOf(one)) ?? 0) + one.collections.length)
  const shares = new Map<string, ShareUse>()
  const lists = config.organizations.reduce((sum, { collections }) => sum + collections.length, 0)
  const sources = new Map<string, PageSource>()
  const periods = new Map<string, number>()
  let readAt = Number.NEGATIVE_INFINITY
  let reading: Promise<void> = Promise.resolve()

  async function read(): Promise<void> {
    const kept = await store.refreshes()
    states = new Map(kept.map((job) => [jobKey(job.organizationId, job.collection), job.state]))
    const stored = new Map((await store.shares([...shares.keys()])).map((share) => [share.budgetKey, share]))
    for (const [key, share] of shares) share.note(stored.get(key) ?? null)
  }

  /** Of several percentages that organizations configure for one budget, the first counts. */
  function shareOf(organization: OrganizationConfig, percent: number): ShareUse {
    const key = keyOf(organization)
    const limit = () => sources.get(key)?.limit() ?? config.rateLimit.requestsPerMinute
    const share = shares.get(key) ?? createShareUse(store, key, () => shareRules(limit(), percent), now)
    shares.set(key, share)
    return share
  }

  function periodOfSchedule(schedule: string): number {
    const known = periods.get(schedule) ?? periodOf(schedule, config.timezone, now())
    periods.set(schedule, known)
    return known
  }

  /** Null for a list that is only walked whole. */
  function policyOf({ organization, job }: SelectedJob): RefreshPolicy | null {
    const { refresh, schedule } = organization
    if (refresh === false) return null
    const { every, alarm } = refresh
    const share = shareOf(organization, refresh.share)
    const turn = turnOf(listsOf.get(keyOf(organization)) ?? 1, share.rules())
    const { newest } = job.collection
    return { every, turn, alarm, walkEvery: periodOfSchedule(schedule), newest, share }
  }

  function knownOf<L extends PlannedList>(list: L): KnownList<L>[] {
    const { organization, job } = list.selected
    const policy = policyOf(list.selected)
    const saved = states.get(jobKey(organization.id, job.collection.name)) ?? null
    const state = keepChanges(stateOf(saved, scopeText(job)), job.collection.changedSince ?? null)
    return policy && state ? [{ list, policy, state, failed: list.failed, isRead: list.isRead }] : []
  }

  return {
    policyOf,
    /** Reads the states of all lists and the shares of their budgets again, unless that was done just now. */
    update(): Promise<void> {
      const isRecent = Math.abs(now() - readAt) < lists * READ_EVERY_MS_A_LIST
      if (lists > FEW_LISTS && isRecent) return reading
      readAt = now()
      reading = read().catch((error: unknown) => {
        readAt = Number.NEGATIVE_INFINITY
        throw error
      })
      return reading
    },
    /** See `dueLists`. */
    due<L extends PlannedList>(planned: readonly L[]): ReturnType<typeof dueLists<L>> {
      const byBudget = Map.groupBy(planned.flatMap(knownOf), ({ policy }) => policy.share)
      return [...byBudget.values()].flatMap((sharing) => dueLists(sharing, now()))
    },
    /** Notes the source of an organization's pages, which knows the rate limit. */
    watch(organization: OrganizationConfig, source: PageSource) {
      sources.set(keyOf(organization), source)
    },
  }
}

/** A list that `start` keeps fresh between its full walks. */
export interface FreshJob {
  selected: SelectedJob
  scheduled: ScheduledJob
  /** Reads all of it, or refreshes it if that is still due. Returns whether that failed, and never rejects. */
  read: (reads: Reads) => Promise<{ hasFailed: boolean }>
}

export interface KeepFreshOptions {
  jobs: readonly FreshJob[]
  plan: Pick<RefreshPlan, 'update' | 'due'>
  /** Returns the lists that no other worker reads, or is about to read; absent: all. */
  takeFree?:
    | (<L extends { organizationId: string; collection: string }>(lists: readonly L[]) => Promise<L[]>)
    | undefined
  scheduler: Pick<Scheduler, 'isRunning' | 'runBetween'>
  runtime: Pick<Runtime, 'now' | 'sleep'>
  /** Called with the error when refreshes cannot start, and with null when they can again. */
  onTrouble: (error: unknown) => void
  signal: AbortSignal
}

/** How often to look for lists that are due: no event says so, since the price falls and other processes read and write. Milliseconds. */
const LOOK_FOR_DUE_EVERY_MS = 5000
const SHORTEST_PAUSE_MS = 1000

/** Refreshes lists whenever that is due, until the signal. A list that is being walked refreshes itself. */
export async function keepFresh(options: KeepFreshOptions): Promise<void> {
  const { jobs, plan, takeFree, scheduler, runtime, onTrouble, signal } = options
  const { now, sleep } = runtime
  const lists = jobs.map((job) => ({ ...job, failed: {} as PlannedList['failed'] }))
  const everyOf = ({ selected: { organization } }: FreshJob) =>
    organization.refresh === false ? LOOK_FOR_DUE_EVERY_MS : organization.refresh.every
  const pause = Math.max(SHORTEST_PAUSE_MS, Math.min(LOOK_FOR_DUE_EVERY_MS, ...jobs.map(everyOf)))
  let isTroubled = false
  const tell = (error: unknown) => {
    if (isTroubled !== (error !== null)) onTrouble(error)
    isTroubled = error !== null
  }

  /** Begins what is due and has room in the share. */
  async function look(): Promise<void> {
    const due = plan
      .due(lists.map((list) => ({ ...list, isRead: scheduler.isRunning(list.scheduled) })))
      .map(({ list, reads }) => {
        const { organization, collection } = list.selected.job
        return { list, reads, organizationId: organization.id, collection: collection.name }
      })
    if (due.length === 0) return
    const free = takeFree ? await takeFree(due) : due
    tell(null)
    for (const { list, reads } of free) {
      scheduler.runBetween(list.scheduled, async () => {
        const { hasFailed } = await list.read(reads)
        if (hasFailed) list.failed[reads] = now()
      })
    }
  }

  while (!signal.aborted) {
    // A mirror that cannot be read is reported by the next walk.
    await plan.update().catch(() => {})
    await look().catch((error: unknown) => {
      if (!signal.aborted) tell(error)
    })
    await sleep(pause, signal).catch(() => {})
  }
}
