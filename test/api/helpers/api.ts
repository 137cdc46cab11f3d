import { setImmediate as nextTurn } from 'node:timers/promises'
import { inspect } from 'node:util'
import { type ApiOptions, createApi } from '../../../src/api/client.ts'
import type { HttpGet } from '../../../src/api/http.ts'
import { createTokenHold } from '../../../src/api/token-hold.ts'
import { createClock } from '../../helpers/clock.ts'
import { jobOf } from '../../helpers/jobs.ts'
import { pageOf } from '../../helpers/list-server.ts'
import { createBudgetStore, createHoldStore, createObserver, NOW } from './rate.ts'

export const TOKEN = '12|s3cr3t/t0ken-that-nobody-may-see'
export const ORDERS = '/api/v1/admin/orders'

const OPTIONS: Omit<ApiOptions, 'baseUrl' | 'now' | 'sleep' | 'budgets'> = {
  timeout: 30_000,
  maxResponseBytes: 1_000_000,
  userAgent: 'admin-mirror/0.0.0',
  concurrency: 4,
  rate: {
    requestsPerMinute: null,
    sharePercent: 100,
    refreshPercent: 10,
    fallbackWait: 60_000,
    maxWait: 900_000,
  },
  retry: { attempts: 3, minDelay: 1000, maxDelay: 60_000 },
  random: () => 0,
  // As main.ts does: bytes that have arrived are read.
  yieldToEventLoop: async () => {
    await nextTurn()
    await nextTurn()
  },
}

export interface Setting {
  options?: Partial<ApiOptions>
  holdStore?: ReturnType<typeof createHoldStore>
  /** In place of the network. */
  get?: HttpGet
}

/** A client whose waits take no time, and one job of it. */
export function createSetting(
  baseUrl: string,
  { options = {}, holdStore = createHoldStore(), get }: Setting = {},
) {
  const clock = createClock(NOW)
  const budgets = createBudgetStore()
  const { now } = clock
  /** Who waits for an answer of another request sleeps again and again: it can come meanwhile. */
  const sleep: ApiOptions['sleep'] = async (ms, signal) => {
    await nextTurn()
    await clock.sleep(ms, signal)
  }
  const openSource = createApi({ ...OPTIONS, baseUrl, now, sleep, budgets, ...options }, get)
  const hold = createTokenHold(holdStore, 'admin-mirror resume')
  const { observe, reports } = createObserver()
  const controller = new AbortController()
  const { signal } = controller

  function open(job = jobOf()) {
    const source = openSource(job, { token: TOKEN, budgetKey: 'budget', hold })
    const fetchPage = (page = 1) => source.fetchPage(page, observe, signal)
    return {
      refusal: source.refusal,
      clockAhead: () => source.clockAhead?.(),
      fetchPage,
      /** The error of a page that fails. */
      errorOf: async (page = 1): Promise<Error> => {
        const outcome: unknown = await fetchPage(page).catch((error: unknown) => error)
        if (outcome instanceof Error) return outcome
        throw new Error(`the page was read: ${inspect(outcome)}`)
      },
    }
  }

  return { open, ...open(), reports, clock, budgets, holdStore, stop: () => controller.abort() }
}

/** A page of orders, one a page, as text. */
export function pageText(page: number, lastPage = page, fields: Record<string, unknown> = {}): string {
  const list = Array.from({ length: lastPage }, (_, index) => ({ id: index + 1 }))
  const { body } = pageOf(list, { path: ORDERS, page, query: new URLSearchParams() }, 1)
  return JSON.stringify({ ...body, ...fields })
}
