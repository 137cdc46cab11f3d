import type { Config } from '../../config/config.ts'
import type { OrganizationConfig } from '../../config/organizations.ts'
import { periodOf } from '../../schedule/cron.ts'
import {
  dueAt,
  isWalkedWhole,
  loadOf,
  type RefreshLoad,
  type RefreshPolicy,
  refreshInterval,
  timeForRefresh,
  withOwnCost,
} from '../../sync/refresh/due.ts'
import { scopeText } from '../../sync/refresh/saved.ts'
import { type RefreshState, stateOf } from '../../sync/refresh/state.ts'
import type { DueRefresh, RefreshTurns, TakenTurns } from '../../sync/refresh-turns.ts'
import type { Store } from '../../sync/store.ts'
import type { Job, PageSource } from '../../sync/types.ts'
import { jobOf, type SelectedJob } from '../selection.ts'
import { createPace } from './pace.ts'

/** How the lists of a configuration share what refreshes may use, and when each is refreshed next. */
export interface RefreshPlan {
  /** Null for a list that is only walked whole. */
  policyOf(selected: SelectedJob): RefreshPolicy | null
  /** Reads the states of all lists again, unless that was done just now. */
  update(): Promise<void>
  /**
   * Epoch milliseconds; null: not before a full walk is complete, or never.
   * @param triedAt When this process tried it last. A try that ends before its first request leaves no trace in the mirror,
   * and a failed walk of a short list leaves none for refreshes.
   */
  nextAt(selected: SelectedJob, triedAt: number | null): number | null
  /** Names the budget that refreshes of this list draw on. */
  budgetOf(selected: SelectedJob): string
  /** The budget that a refresh of this list draws on, and what it takes of it. */
  useOf(selected: SelectedJob): DueRefresh
  /** Takes those of the lists that are due whose refreshes this process may begin now. */
  take<L extends DueRefresh>(due: readonly L[]): Promise<TakenTurns<L>>
  /** So many at once at most. */
  mostTaken: number
  /** Notes the source of an organization's pages, which knows the rate limit. */
  watch(organization: OrganizationConfig, source: PageSource): void
}

export interface RefreshPlanOptions {
  config: Config
  store: Pick<Store, 'refreshes'>
  /** Names the rate budget of an organization. */
  budgetOf(organization: OrganizationConfig): string
  now: () => number
  /** Of a mirror that several machines share. */
  turns?: RefreshTurns | undefined
}

/** With more lists, their states are read at most once in so many milliseconds per list, since every run asks for them. */
const FEW_LISTS = 100
const READ_EVERY_MS_A_LIST = 2

/** A walk whose list is being changed at that moment asks again so much later. */
const ASK_AGAIN_MS = 1000

export function createRefreshPlan({
  config,
  store,
  budgetOf,
  now,
  turns = createPace(),
}: RefreshPlanOptions): RefreshPlan {
  let states = new Map<string, RefreshState>()
  /** What a refresh of each list takes, by the budget that they share. */
  const loads = new Map<string, RefreshLoad>()
  const budgets = new Map(config.organizations.map((one) => [one.id, budgetOf(one)]))
  const refreshed = Map.groupBy(
    config.organizations.filter(({ refresh }) => refresh !== false),
    budgetNameOf,
  )
  const lists = config.organizations.reduce((sum, { collections }) => sum + collections.length, 0)
  const sources = new Map<string, PageSource>()
  const periods = new Map<string, number>()
  let isRead = false
  let readAt = Number.NEGATIVE_INFINITY
  let reading: Promise<void> = Promise.resolve()

  async function read(): Promise<void> {
    const kept = await store.refreshes()
    states = new Map(kept.map((job) => [nameOf(job.organizationId, job.collection), job.state]))
    loads.clear()
    isRead = true
  }

  function periodOfSchedule(schedule: string): number {
    const known = periods.get(schedule) ?? periodOf(schedule, config.timezone, now())
    periods.set(schedule, known)
    return known
  }

  /** Made when it is asked for: each run reads what lists keep, and there may be thousands of budgets. */
  function loadOfBudget(budget: string): RefreshLoad {
    const known = loads.get(budget)
    if (known) return known
    const sharing = refreshed.get(budget) ?? []
    const costs = sharing.flatMap((one) =>
      one.collections.map((list) => costOf(stateOfJob(jobOf(one, list)))),
    )
    const made = loadOf(costs)
    loads.set(budget, made)
    return made
  }

  function budgetNameOf({ id }: Pick<OrganizationConfig, 'id'>): string {
    return budgets.get(id) ?? id
  }

  function limitOf(organization: OrganizationConfig): number | null {
    return sources.get(budgetNameOf(organization))?.limit() ?? config.rateLimit.requestsPerMinute
  }

  function stateOfJob(job: Job): RefreshState | null {
    return stateOf(states.get(nameOf(job.organization.id, job.collection.name)) ?? null, scopeText(job))
  }

  function policyOf({ organization, job }: SelectedJob): RefreshPolicy | null {
    const { refresh, schedule } = organization
    if (refresh === false) return null
    return {
      ...refresh,
      load: (own) => {
        if (!isRead) return loadOf([own])
        // Asked between the pages of a walk: what it takes must not grow with the lists.
        const all = loadOfBudget(budgetNameOf(organization))
        return own === null ? all : withOwnCost(all, costOf(stateOfJob(job)), own)
      },
      walkEvery: periodOfSchedule(schedule),
      async takeTurn(own) {
        const due = useOf({ organization, job }, own)
        const { taken, freeAt } = await turns.take([due], now(), true)
        return taken.length > 0 ? null : Math.max(freeAt.get(due.budget) ?? 0, now() + ASK_AGAIN_MS)
      },
    }
  }

  function useOf(selected: SelectedJob, cost = costOf(stateOfJob(selected.job))): DueRefresh {
    const { organization, job } = selected
    const limit = limitOf(organization)
    return {
      organizationId: organization.id,
      collection: job.collection.name,
      budget: budgetNameOf(organization),
      needs: organization.refresh ? timeForRefresh({ ...organization.refresh, limit }, cost) : 0,
      interval: intervalOf(selected, cost),
    }
  }

  function intervalOf(selected: SelectedJob, own: number | null): number {
    const policy = policyOf(selected)
    if (!policy) return 0
    return refreshInterval({ ...policy, limit: limitOf(selected.organization), load: policy.load(own) })
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
    nextAt(selected, triedAt) {
      const state = stateOfJob(selected.job)
      if (!state || selected.organization.refresh === false) return null
      const interval = intervalOf(selected, state.cost)
      const next = dueAt(state, interval, now())
      // Once the clock was set back, nobody knows how long ago that was.
      return triedAt === null || triedAt > now() ? next : Math.max(next, triedAt + interval)
    },
    budgetOf: ({ organization }) => budgetNameOf(organization),
    useOf: (selected) => useOf(selected),
    take: (due) => turns.take(due, now(), false),
    mostTaken: turns.most,
    watch: (organization, source) => {
      sources.set(budgetNameOf(organization), source)
    },
  }
}

/** A short list is walked whole, and asked for its end once more. */
function costOf(state: RefreshState | null): number | null {
  return state && isWalkedWhole(state) ? state.lastPage + 1 : (state?.cost ?? null)
}

function nameOf(organizationId: string, collection: string): string {
  return `${organizationId} ${collection}`
}
