import type { Config, OrganizationConfig } from '../config/config.ts'
import { periodOf } from '../schedule/cron.ts'
import { createShareUse, type RefreshPolicy, type ShareUse } from '../sync/refresh/share.ts'
import { type RefreshState, scopeText, stateOf } from '../sync/refresh/state.ts'
import { nextReading, type SharingList, shareRules } from '../sync/refresh/worth.ts'
import type { Store } from '../sync/store.ts'
import type { PageSource } from '../sync/types.ts'
import { jobKey } from '../text.ts'
import type { SelectedJob } from './configuration.ts'

export type RefreshPlan = ReturnType<typeof createRefreshPlan>

export interface RefreshPlanOptions {
  config: Config
  store: Pick<Store, 'refreshes' | 'shares' | 'writeShare'>
  /** The key of an organization's rate budget. */
  budgetOf(organization: OrganizationConfig): string
  now: () => number
}

/** The lists of many budgets are read again only after so long for each list: else reading them would take a growing part of the time. */
const READ_EVERY_MS_A_LIST = 2

/** What the lists of a configuration share for refreshes, and which of them is read next. */
export function createRefreshPlan({ config, store, budgetOf, now }: RefreshPlanOptions) {
  const budgets = new Map(config.organizations.map((one) => [one.id, budgetOf(one)]))
  const budgetKey = ({ id }: OrganizationConfig) => budgets.get(id) ?? id
  const lists = config.organizations
    .filter(({ refresh }) => refresh !== false)
    .flatMap((organization) =>
      organization.collections.map(
        (collection): SelectedJob => ({ organization, job: { organization, collection } }),
      ),
    )
  const sharing = Map.groupBy(lists, ({ organization }) => budgetKey(organization))
  const shares = new Map([...sharing].map(([key, [one]]) => [key, shareOf(key, one)]))
  const sources = new Map<string, PageSource>()
  const periods = new Map<string, number>()
  let states = new Map<string, RefreshState>()
  let readAt = Number.NEGATIVE_INFINITY
  let reading: Promise<void> = Promise.resolve()

  /** Of several percentages that organizations configure for one budget, the first counts. */
  function shareOf(key: string, one: SelectedJob | undefined): ShareUse {
    const { refresh = false } = one?.organization ?? {}
    const limit = () => sources.get(key)?.limit() ?? config.rateLimit.requestsPerMinute
    return createShareUse(store, key, () => shareRules(limit(), refresh === false ? 0 : refresh.share), now)
  }

  async function read(): Promise<void> {
    const kept = await store.refreshes()
    states = new Map(kept.map((job) => [jobKey(job.organizationId, job.collection), job.state]))
    const stored = new Map((await store.shares([...shares.keys()])).map((share) => [share.budgetKey, share]))
    for (const [key, share] of shares) share.note(stored.get(key) ?? null)
  }

  function paceOf({ refresh, schedule }: OrganizationConfig) {
    const walkEvery = periods.get(schedule) ?? periodOf(schedule, config.timezone, now())
    periods.set(schedule, walkEvery)
    return { every: refresh === false ? Number.POSITIVE_INFINITY : refresh.every, walkEvery }
  }

  /** The lists of a budget that were read whole before. */
  function knownOf(budget: string): (SharingList & { selected: SelectedJob })[] {
    return (sharing.get(budget) ?? []).flatMap((selected) => {
      const state = stateOf(states.get(keyOf(selected)) ?? null, scopeText(selected.job))
      return state ? [{ ...state, ...paceOf(selected.organization), selected }] : []
    })
  }

  return {
    budgets: [...sharing.keys()],
    /** Null for a list that is only walked whole. */
    policyOf(selected: SelectedJob): RefreshPolicy | null {
      const { organization } = selected
      const budget = budgetKey(organization)
      const share = shares.get(budget)
      if (organization.refresh === false || !share) return null
      const key = keyOf(selected)
      return {
        ...paceOf(organization),
        share,
        others: () => knownOf(budget).filter((other) => keyOf(other.selected) !== key),
        note: (state) => void states.set(key, state),
      }
    },
    /** Reads the states of all lists and the shares of their budgets again, unless that was done just now. */
    update(): Promise<void> {
      if (Math.abs(now() - readAt) < lists.length * READ_EVERY_MS_A_LIST) return reading
      readAt = now()
      reading = read().catch((error: unknown) => {
        readAt = Number.NEGATIVE_INFINITY
        throw error
      })
      return reading
    },
    /** The list of a budget that is read next, if its share has room. `isTaken`: it cannot be read now. */
    next(budget: string, isTaken: (selected: SelectedJob) => boolean): SelectedJob | null {
      const share = shares.get(budget)
      const known = knownOf(budget).map((list) => ({ ...list, isTaken: isTaken(list.selected) }))
      return (share && nextReading(known, share.known(), share.rules(), now())?.list.selected) ?? null
    },
    /** Notes the source of an organization's pages, which knows the rate limit. */
    watch(organization: OrganizationConfig, source: PageSource) {
      sources.set(budgetKey(organization), source)
    },
  }
}

/** The name of a list. */
export function keyOf({ organization, job }: SelectedJob): string {
  return jobKey(organization.id, job.collection.name)
}
