import type { ErrorCode, KnownError } from '../errors.ts'
import type { JsonValue } from '../json/value.ts'

/** One collection of one organization. */
export interface Job {
  organization: { id: string; name: string }
  collection: Collection
}

/** A list endpoint as the configuration describes it for one organization. */
export interface Collection {
  name: string
  path: string
  /** Dotted paths of the key's fields. */
  key: string[]
  filters: Filters
  /** The configured filters, if a backfill added its own to `filters`. */
  scope?: Filters
  history: boolean | number
  ignore: string[]
  total: 'check' | 'ignore'
  /** The end of the list where new items appear; `auto`: refreshes learn it. */
  newest: 'auto' | 'first' | 'last'
}

export type Filters = Record<string, string | string[]>

/** An item of a list, as JSON and parsed with exact numbers. */
export interface Item {
  text: string
  value: JsonValue
}

/** One checked answer. */
export interface Page {
  /** The number of the page that was asked for. */
  number: number
  items: Item[]
  /** The page that `links.next` names; null at the end of the list. */
  next: number | null
  total: number | null
  lastPage: number | null
  /** The list has no pages: page 1 is all of it, and any later one is empty. */
  isUnpaged?: true
}

/** What happens while a page is asked for. `until` is in epoch milliseconds. */
export type RequestEvent =
  | { kind: 'request' }
  | { kind: 'retry'; code: ErrorCode; reason: string; delayMs: number }
  | { kind: 'throttled' }
  | { kind: 'wait'; reason: string; until: number }
  /** When the request has left, or never will. */
  | { kind: 'waited'; ms: number }

/** Receives what happens, in order. */
export type Observe<Event> = (event: Event) => void

/** In which order requests leave that wait for one rate limit; default: `walk`. */
export type Urgency = 'refresh' | 'walk' | 'older'

/** The network, as `sync` sees it. */
export interface PageSource {
  /** Why no request may be sent now: a wait beyond `rateLimit.maxWait`, a held token, or an unusable mirror. Null: one may. */
  refusal(): Promise<KnownError | null>
  /** Requests a minute that may be sent with this token; null where nothing limits them, or nothing is known. */
  limit(): number | null
  /** Returns one checked page. Throws only errors of ours. */
  fetchPage(
    page: number,
    observe: Observe<RequestEvent>,
    signal: AbortSignal,
    urgency?: Urgency,
  ): Promise<Page>
  /** How far our clock is ahead of the API's, in milliseconds, by the `Date` of its last answer; null or absent: unknown. */
  clockAhead?(): number | null
}

/** A budget of requests as it is stored for all processes. Times are epoch milliseconds, 0 for none. */
export interface StoredBudget {
  closedUntil: number
  /** What `api` knows of it, as text; null before the first. */
  known: string | null
  /** What the process that wrote last waits for, and until when; for `status`. */
  waitingFor: string | null
  waitingUntil: number
}

/** The budgets of requests, by key. */
export interface BudgetStore {
  /** `version` differs after each change, and is never empty. */
  read(budgetKey: string): Promise<Pick<StoredBudget, 'closedUntil' | 'known'> & { version: string }>
  /**
   * Writes the result of `next` if the version is still this one, and returns the new version; else null. `next` reads the
   * clock, so it is called with the lock held, and again if the transaction is rolled back.
   */
  compareAndSet(budgetKey: string, version: string, next: () => StoredBudget): Promise<string | null>
}

export type Coverage = 'steady' | 'repaired' | 'drifted'

/** The result of a complete walk. */
export interface WalkOutcome {
  coverage: Coverage | null
  /** Why this walk is not trusted, so that it removes nothing; null if it is, or if it is partial. */
  untrusted: string | null
}

export type Trigger = 'schedule' | 'manual' | 'backfill' | 'refresh'

/** What a run should walk. */
export interface WalkPlan {
  origin: 'sync' | 'backfill'
  kind: 'full' | 'partial'
  /** 1, or the `--from-page` of a backfill. */
  firstPage: number
  /** Open walks without progress for longer are not resumed; null: always resumed. Milliseconds. */
  resumeWithin: number | null
  /** Begin a new walk even if one is open. */
  restart: boolean
}

/** A warning about a page. `event`: `columns_changed` where it is absent. */
export interface Notice {
  event?: 'items_rejected' | 'clock_differs'
  message: string
}
