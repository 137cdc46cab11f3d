import type { Config, OrganizationConfig } from '../config/config.ts'
import { createShareUse, type RefreshPolicy, type ShareUse } from '../sync/refresh/share.ts'
import { type RefreshState, scopeText, stateOf } from '../sync/refresh/state.ts'
import { nextReading } from '../sync/refresh/worth.ts'
import type { Store } from '../sync/store.ts'
import type { PageSource } from '../sync/types.ts'
import { jobKey } from '../text.ts'
import type { ConfiguredJob } from './selection.ts'

export type RefreshPlan = ReturnType<typeof createRefreshPlan>

export interface RefreshPlanOptions {
  config: Config
  store: Pick<Store, 'refreshes' | 'shares' | 'writeShare'>
  /** The key of an organization's rate budget. */
  budgetOf(organization: OrganizationConfig): string
  now: () => number
}

/** A list that is refreshed. `state`: null until it was read whole. */
interface List extends Pick<RefreshPolicy, 'every'> {
  job: ConfiguredJob
  budget: string
  percent: number
  state: RefreshState | null
}

/** The lists of many budgets are read again only after so long for each list: else reading them would take a growing part of the time. */
const READ_EVERY_MS_A_LIST = 2

/** What the lists of a configuration share for refreshes, and which of them is read next. */
export function createRefreshPlan({ config, store, budgetOf, now }: RefreshPlanOptions) {
  const lists = new Map(config.organizations.flatMap(listsOf).map((list) => [listKey(list.job), list]))
  const budgets = Map.groupBy(lists.values(), ({ budget }) => budget)
  // Of several percentages that organizations configure for one budget, the first counts.
  const shares = new Map([...budgets].map(([key, [first]]) => [key, useOf(key, first?.percent ?? 0)]))
  /** By budget, who knows its limit. */
  const sources = new Map<string, PageSource>()
  let readAt = Number.NEGATIVE_INFINITY

  function listsOf(organization: OrganizationConfig): List[] {
    const { refresh, collections } = organization
    if (refresh === false) return []
    const { every, share: percent } = refresh
    const pace = { every, percent, budget: budgetOf(organization) }
    return collections.map((collection) => ({
      ...pace,
      job: { organization, collection },
      state: null,
    }))
  }

  function useOf(key: string, percent: number): ShareUse {
    const limit = () => sources.get(key)?.limit() ?? config.rateLimit.requestsPerMinute
    return createShareUse(store, key, { limit, percent }, now)
  }

  function knownOf(budget: string) {
    return (budgets.get(budget) ?? []).flatMap((list) =>
      list.state ? [{ ...list, ...list.state, list }] : [],
    )
  }

  return {
    budgets: [...budgets.keys()],
    /** Null for a list that is only walked whole. */
    policyOf(job: ConfiguredJob): RefreshPolicy | null {
      const list = lists.get(listKey(job))
      const share = list && shares.get(list.budget)
      if (!share) return null
      const { every, budget } = list
      return {
        every,
        share,
        others: () => knownOf(budget).filter((other) => other.list !== list),
        note(state) {
          list.state = state
        },
      }
    },
    /** Reads the states of all lists and the shares of their budgets again, unless that was done just now. */
    async update(): Promise<void> {
      if (Math.abs(now() - readAt) < lists.size * READ_EVERY_MS_A_LIST) return
      readAt = now()
      const kept = await store.refreshes()
      const states = new Map(kept.map((one) => [jobKey(one.organizationId, one.collection), one.state]))
      for (const [key, list] of lists) list.state = stateOf(states.get(key), scopeText(list.job), now())
      const stored = new Map((await store.shares([...shares.keys()])).map((one) => [one.budgetKey, one]))
      for (const [key, share] of shares) share.note(stored.get(key) ?? null)
    },
    /** The list of a budget that is read next, if its share has room. `isTaken`: it cannot be read now. */
    next(budget: string, isTaken: (job: ConfiguredJob) => boolean): ConfiguredJob | null {
      const share = shares.get(budget)
      const known = knownOf(budget).map((one) => ({ ...one, isTaken: isTaken(one.job) }))
      return (share && nextReading(known, share.level(), share.perMinute(), now()))?.list.job ?? null
    },
    /** Notes the source of a job's pages, which knows the rate limit. */
    watch(job: ConfiguredJob, source: PageSource) {
      const list = lists.get(listKey(job))
      if (list) sources.set(list.budget, source)
    },
  }
}

/** Tells lists apart. */
export function listKey({ organization, collection }: ConfiguredJob): string {
  return jobKey(organization.id, collection.name)
}
