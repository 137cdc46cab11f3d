import type { KnownError } from '../errors.ts'
import type { JsonValue } from '../json/value.ts'
import type { CoverageState, Question } from './coverage/state.ts'

/** One collection of one organization: the unit that is walked, resumed and reported on. */
export interface Job {
  organization: { id: string; name: string }
  collection: Collection
}

/** A list endpoint as the configuration describes it for one organization. */
export interface Collection {
  name: string
  path: string
  /** Dotted paths of the fields that tell items apart. */
  key: string[]
  filters: Filters
  /** The configured filters, where a backfill has put its own on top. */
  scope?: Filters
  history: boolean | number
  ignore: string[]
  total: 'check' | 'ignore'
}

export type Filters = Record<string, string | string[]>

/** An item of a list. */
export interface Item {
  /** As it was sent. */
  text: string
  /** With every number exact. */
  value: JsonValue
}

/** One answer, checked: what the page loop and the mirror work with. */
export interface Page {
  /** The page that was asked for. */
  number: number
  items: Item[]
  /** The page that `links.next` names, or null at the end of the list. */
  next: number | null
  total: number | null
  lastPage: number | null
  /** False when the whole list came in one answer without paging. */
  paginated: boolean
  /** Requests a minute that the server announced, if it did. */
  announcedLimit: number | null
}

/** What asking for one page costs, told as it happens, so that no wait is silent. Times are epoch milliseconds. */
export interface PageObserver {
  onRequest(): void
  onRetry(reason: string, delayMs: number): void
  onThrottled(): void
  onWait(reason: string, until: number): void
  onWaited(ms: number): void
}

/** The network as the page loop sees it. */
export interface PageSource {
  /** Why not even one request may be sent now: a wait beyond `rateLimit.maxWait`. */
  refusal(): Promise<KnownError | null>
  /** One page, checked; throws errors of ours only. */
  fetchPage(page: number, observer: PageObserver, signal: AbortSignal): Promise<Page>
  /** No further page is asked for: what was set aside for this job is others' now. */
  close(): Promise<void>
}

/** How far a walk has come; committed with the rows of the page it was decided on. */
export interface Checkpoint {
  pass: number
  /** The page to read on with, or null when the pass has come to the list's end. */
  nextPage: number | null
  /** What to ask for next: that page, or an older one; null when the pass has nothing more to ask. */
  ask: Question | null
  state: CoverageState
}

export type Coverage = 'steady' | 'repaired' | 'drifted'

/** What a complete walk says of itself. */
export interface WalkOutcome {
  coverage: Coverage | null
  /** How many items such a walk misses on average; null where that cannot be told. */
  expectedMissed: number | null
  /** Why nothing is removed on the word of this walk; null where it is trusted, or partial. */
  untrusted: string | null
  /** Of one that is drifted: whether the total was off in its last pass, and in the one before it, too. */
  totalOff: 'once' | 'again' | null
}

/** A list that was read to its end. */
export interface Reading {
  coverage: Coverage | null
  /** What did not come out even, where it is `drifted`; null else. */
  why: string | null
  passes: number
  state: CoverageState
}

export type Trigger = 'schedule' | 'manual' | 'backfill'

/** What a run means to walk. */
export interface WalkPlan {
  origin: 'sync' | 'backfill'
  kind: 'full' | 'partial'
  /** 1, unless a backfill was told to begin elsewhere. */
  firstPage: number
  /** An open walk that has stood still for longer is begun again; null for never. Milliseconds. */
  resumeWithin: number | null
  /** Begin again, whatever stands open. */
  restart: boolean
}

/** What the log says of a page: `warn` where values stand elsewhere than one would look for them. */
export interface Notice {
  level: 'info' | 'warn'
  message: string
}
