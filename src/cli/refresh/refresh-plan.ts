import type { Config } from '../../config/config.ts'
import type { OrganizationConfig } from '../../config/organizations.ts'
import { periodOf } from '../../schedule/cron.ts'
import { keepChanges } from '../../sync/refresh/changed-since.ts'
import { dueLists, type KnownList } from '../../sync/refresh/due-lists.ts'
import { shareRules, turnOf } from '../../sync/refresh/price.ts'
import type { RefreshPolicy } from '../../sync/refresh/refresher.ts'
import { scopeText } from '../../sync/refresh/saved.ts'
import { createShareUse, type ShareUse } from '../../sync/refresh/share-use.ts'
import { type RefreshState, stateOf } from '../../sync/refresh/state.ts'
import type { Store } from '../../sync/store.ts'
import type { PageSource } from '../../sync/types.ts'
import type { SelectedJob } from '../selection.ts'

/** What the lists of a configuration share for refreshes, and which of them are due. */
export interface RefreshPlan {
  /** Null for a list that is only walked whole. */
  policyOf(selected: SelectedJob): RefreshPolicy | null
  /** Reads the states of all lists and the shares of their budgets again, unless that was done just now. */
  update(): Promise<void>
  /** See `dueLists`. */
  due<L extends PlannedList>(lists: readonly L[]): ReturnType<typeof dueLists<L>>
  /** Notes the source of an organization's pages, which knows the rate limit. */
  watch(organization: OrganizationConfig, source: PageSource): void
}

export interface PlannedList extends Pick<KnownList<unknown>, 'tried' | 'isRead'> {
  selected: SelectedJob
}

export interface RefreshPlanOptions {
  config: Config
  store: Pick<Store, 'refreshes' | 'shares' | 'writeShare'>
  /** The key of an organization's rate budget. */
  budgetOf(organization: OrganizationConfig): string
  now: () => number
}

/** With more lists, their states are read at most once in so many milliseconds per list, since every run asks for them. */
const FEW_LISTS = 100
const READ_EVERY_MS_A_LIST = 2

export function createRefreshPlan({ config, store, budgetOf, now }: RefreshPlanOptions): RefreshPlan {
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
    states = new Map(kept.map((job) => [nameOf(job.organizationId, job.collection), job.state]))
    const stored = new Map((await store.shares([...shares.keys()])).map((share) => [share.scope, share]))
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
    const saved = states.get(nameOf(organization.id, job.collection.name)) ?? null
    const state = keepChanges(stateOf(saved, scopeText(job)), job.collection.changedSince ?? null)
    return policy && state ? [{ list, policy, state, tried: list.tried, isRead: list.isRead }] : []
  }

  return {
    policyOf,
    update() {
      const isRecent = Math.abs(now() - readAt) < lists * READ_EVERY_MS_A_LIST
      if (lists > FEW_LISTS && isRecent) return reading
      readAt = now()
      reading = read().catch((error: unknown) => {
        readAt = Number.NEGATIVE_INFINITY
        throw error
      })
      return reading
    },
    due(planned) {
      const byBudget = Map.groupBy(planned.flatMap(knownOf), ({ policy }) => policy.share)
      return [...byBudget.values()].flatMap((sharing) => dueLists(sharing, now()))
    },
    watch: (organization, source) => {
      sources.set(keyOf(organization), source)
    },
  }
}

function nameOf(organizationId: string, collection: string): string {
  return `${organizationId} ${collection}`
}
