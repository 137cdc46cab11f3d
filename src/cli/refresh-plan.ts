import type { Config } from '../config/config.ts'
import type { OrganizationConfig } from '../config/organizations.ts'
import { periodOf } from '../schedule/cron.ts'
import { createShareUse, type RefreshPolicy, type ShareUse, sharingList } from '../sync/refresh/share.ts'
import { type RefreshState, scopeText, stateOf } from '../sync/refresh/state.ts'
import { nextReading, type Pace, type SharingList, shareRules } from '../sync/refresh/worth.ts'
import type { Store } from '../sync/store.ts'
import type { PageSource } from '../sync/types.ts'
import { jobKey } from '../text.ts'
import type { SelectedJob } from './selection.ts'

export type RefreshPlan = ReturnType<typeof createRefreshPlan>

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

/** What the lists of a configuration share for refreshes, and which of them is read next. */
export function createRefreshPlan({ config, store, budgetOf, now }: RefreshPlanOptions) {
  const budgets = new Map(config.organizations.map((one) => [one.id, budgetOf(one)]))
  const keyOf = ({ id }: OrganizationConfig) => budgets.get(id) ?? id
  const lists = config.organizations
    .filter(({ refresh }) => refresh !== false)
    .flatMap((organization) =>
      organization.collections.map(
        (collection): SelectedJob => ({ organization, job: { organization, collection } }),
      ),
    )
  const sharing = Map.groupBy(lists, ({ organization }) => keyOf(organization))
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

  function paceOf({ refresh, schedule }: OrganizationConfig): Pace | null {
    if (refresh === false) return null
    const walkEvery = periods.get(schedule) ?? periodOf(schedule, config.timezone, now())
    periods.set(schedule, walkEvery)
    return { every: refresh.every, walkEvery }
  }

  /** Null for a list that was never read whole. */
  function knownOf(selected: SelectedJob): (SharingList & { selected: SelectedJob }) | null {
    const { organization, job } = selected
    const pace = paceOf(organization)
    const saved = states.get(jobKey(organization.id, job.collection.name)) ?? null
    const state = stateOf(saved, scopeText(job))
    return pace && state && { ...sharingList(state, pace, now()), selected }
  }

  return {
    /** Null for a list that is only walked whole. */
    policyOf({ organization, job }: SelectedJob): RefreshPolicy | null {
      const key = keyOf(organization)
      const [pace, share] = [paceOf(organization), shares.get(key)]
      const name = jobKey(organization.id, job.collection.name)
      const isOther = ({ job: other }: SelectedJob) =>
        jobKey(other.organization.id, other.collection.name) !== name
      if (!pace || !share) return null
      return {
        ...pace,
        share,
        others: (isTaken) =>
          (sharing.get(key) ?? []).flatMap((other) => {
            const known = isOther(other) && knownOf(other)
            return known ? [{ ...known, isTaken }] : []
          }),
        note: (state) => void states.set(name, state),
      }
    },
    /** Reads the states of all lists and the shares of their budgets again, unless that was done just now. */
    update(): Promise<void> {
      const isRecent = Math.abs(now() - readAt) < lists.length * READ_EVERY_MS_A_LIST
      if (lists.length > FEW_LISTS && isRecent) return reading
      readAt = now()
      reading = read().catch((error: unknown) => {
        readAt = Number.NEGATIVE_INFINITY
        throw error
      })
      return reading
    },
    /** Of each budget the list that is read next, if its share has room. `isTaken`: it cannot be read now. */
    next(isTaken: (selected: SelectedJob) => boolean): SelectedJob[] {
      return [...sharing].flatMap(([key, sharers]) => {
        const share = shares.get(key)
        if (!share) return []
        const known = sharers.flatMap((selected) => {
          const list = knownOf(selected)
          return list ? [{ ...list, isTaken: isTaken(selected) }] : []
        })
        const chosen = nextReading(known, share.known(), share.rules(), now())
        return chosen ? [chosen.list.selected] : []
      })
    },
    budgetOf: ({ organization }: SelectedJob) => keyOf(organization),
    /** Notes the source of an organization's pages, which knows the rate limit. */
    watch(organization: OrganizationConfig, source: PageSource) {
      sources.set(keyOf(organization), source)
    },
  }
}
