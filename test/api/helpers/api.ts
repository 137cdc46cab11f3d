import { setImmediate as nextTurn } from 'node:timers/promises'
import { inspect } from 'node:util'
import { type ApiOptions, createApi } from '../../../src/api/client.ts'
import type { HttpGet } from '../../../src/api/http.ts'
import { createTokenHold, type HoldStore } from '../../../src/api/token-hold.ts'
import type { Job } from '../../../src/sync/types.ts'
import { createClock } from '../../helpers/clock.ts'
import { NOW } from './budgets.ts'
import { BASE_URL, createJob } from './job.ts'
import { createObserver } from './observer.ts'
import { createHoldStore, createTestBudgetStore } from './stores.ts'

export const TOKEN = '12|s3cr3t/t0ken-that-nobody-may-see'

/** As main.ts does: bytes that have arrived are read. */
async function readArrived(): Promise<void> {
  await nextTurn()
  await nextTurn()
}

const OPTIONS: Omit<ApiOptions, 'now' | 'sleep' | 'budgets'> = {
  baseUrl: BASE_URL,
  timeoutMs: 30_000,
  maxResponseBytes: 1_000_000,
  userAgent: 'admin-mirror/0.0.0',
  concurrency: 4,
  rate: {
    requestsPerMinute: null,
    sharePercent: 100,
    refreshPercent: 10,
    fallbackWaitMs: 60_000,
    maxWaitMs: 900_000,
  },
  retry: { attempts: 3, minDelayMs: 1000, maxDelayMs: 60_000 },
  random: () => 0,
  yieldToEventLoop: readArrived,
}

interface Setting {
  options?: Partial<ApiOptions>
  job?: Job
  token?: string
  holdStore?: HoldStore
  /** In place of the network. */
  get?: HttpGet
}

/** An API whose waits take no time, and one job of it. */
export function createSetting({
  options = {},
  job = createJob(),
  token = TOKEN,
  holdStore = createHoldStore(),
  get,
}: Setting = {}) {
  const clock = createClock(NOW)
  const budgets = createTestBudgetStore()
  const api = createApi({ ...OPTIONS, now: clock.now, sleep: clock.sleep, budgets, ...options }, get)
  const hold = createTokenHold(holdStore, 'admin-mirror resume')
  const { observe, reports } = createObserver()
  const signal = new AbortController().signal

  function open(another: Job = job) {
    const source = api.open(another, { token, budgetKey: 'budget', hold })
    return {
      refusal: source.refusal,
      clockAhead: () => source.clockAhead?.(),
      fetchPage: (page = 1) => source.fetchPage(page, observe, signal),
      /** The error of a page that fails. */
      errorOf: async (page = 1): Promise<Error> => {
        const outcome: unknown = await source
          .fetchPage(page, observe, signal)
          .catch((error: unknown) => error)
        if (outcome instanceof Error) return outcome
        throw new Error(`the page was read: ${inspect(outcome)}`)
      },
    }
  }

  return { open, ...open(), reports, clock, budgets, holdStore }
}
