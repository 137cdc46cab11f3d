import type { Config } from '../config/config.ts'
import type { OrganizationConfig } from '../config/organizations.ts'
import { periodOf } from '../schedule/cron.ts'
import { dueLists, type KnownList, type RefreshPolicy } from '../sync/refresh/due.ts'
import { createShareUse, type ShareUse, shareRules, turnOf } from '../sync/refresh/price.ts'
import { type RefreshState, scopeText, stateOf } from '../sync/refresh/state.ts'
import type { Store } from '../sync/store.ts'
import type { PageSource } from '../sync/types.ts'
import { jobKey } from '../text.ts'
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
 * Every run needs the states of all lists. With more than FEW_LISTS they are read again only after READ_EVERY_MS_A_LIST for each list: else
 * reading them would take a growing part of the time.
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
    const { every } = refresh
    const share = shareOf(organization, refresh.share)
    const turn = turnOf(listsOf.get(keyOf(organization)) ?? 1, share.rules())
    const { newest } = job.collection
    return { every, turn, walkEvery: periodOfSchedule(schedule), newest, share }
  }

  function knownOf<L extends PlannedList>(list: L): KnownList<L>[] {
    const { organization, job } = list.selected
    const policy = policyOf(list.selected)
    const saved = states.get(jobKey(organization.id, job.collection.name)) ?? null
    const state = stateOf(saved, scopeText(job))
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
