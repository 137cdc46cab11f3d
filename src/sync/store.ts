import type { JobError } from '../errors.ts'
import type { JsonObject } from '../json/value.ts'
import type { Answer, WalkRules, Why } from './coverage/pass.ts'
import type { Key, ListedItem, StoredItem } from './items.ts'
import type { RefreshState } from './refresh/state.ts'
import type { Coverage, Job, Notice, Trigger, WalkOutcome, WalkPlan } from './types.ts'

/**
 * All that `sync` asks of the place where rows are kept. Each method handles a whole page or list at once, not single rows. What it writes is
 * written together or not at all; only `findMissing`, `closeWalk` and `prune` work in batches. Throws MirrorError if the store cannot be used.
 * Times are epoch milliseconds, here and below.
 *
 * A new store is a folder beside store/sqlite that implements this and `Tokens` of store/core. It takes the columns of items from
 * store/columns, and the rules from store/core. test/store/contract.ts tests each promise; `openMirror` of cli/mirror.ts chooses it.
 */
export interface Store {
  /** Takes a job for this process, unless another process that is alive has it. `isVerify`: only to compare the list; `status` shows that. */
  acquire(job: Job, isVerify?: boolean): Promise<Acquired>
  release(lease: Lease): Promise<void>
  /** The job's unfinished walks, the oldest first. */
  openWalks(job: Job): Promise<OpenWalk[]>
  /** Begins or resumes a walk, and opens the run's line. Closes runs of the job that died. */
  beginRun(lease: Lease, begin: BeginRun): Promise<{ runId: number; walk: Walk }>
  /** Up to 500 answers of a walk after this ordinal, in order; none at the end of the page ledger. */
  readLedger(walkId: number, after: number): Promise<LedgerEntry[]>
  /** Compares each item with its row, or its reject if it has no usable key. One entry per item. Writes nothing. */
  lookup(job: Job, items: readonly ListedItem[]): Promise<StoredItem[]>
  /** Writes one page. */
  commit(lease: Lease, page: PageCommit): Promise<CommitResult>
  /** Records the live rows that a trusted walk missed. The same walk may be judged any number of times. */
  findMissing(lease: Lease, rule: MissingRule): Promise<MissingCounts>
  /** Ends a walk, and removes or holds back its missing rows as the caller decided. Returns the job's rows that are held back. */
  closeWalk(lease: Lease, end: WalkClosing): Promise<{ heldBack: HeldRemovals | null }>
  /** Opens the run's line for a refresh, and saves that it began. `within`: the run of the walk that it interrupts. */
  beginRefresh(lease: Lease, state: RefreshState, within: Run | null): Promise<number>
  /** Saves what the next refresh starts from. */
  saveRefresh(lease: Lease, state: RefreshState): Promise<void>
  /** What is saved of the refreshes of all jobs of the store. */
  refreshes(): Promise<SavedRefresh[]>
  /** What refreshes have used of these budgets; no entry for one that no refresh has used yet. */
  shares(budgetKeys: readonly string[]): Promise<StoredShare[]>
  /** Writes a share if the stored version is one less (0: there is none). False: another process was faster. */
  writeShare(share: StoredShare): Promise<boolean>
  /** Saves which page the owner of the job is retrying, for `status`; null: none. Ends with the lease. */
  noteRetry(lease: Lease, retry: PageRetry | null): Promise<void>
  /** Closes the run's line, or deletes it if the run was refused before its first request; also after another process has taken the job. */
  finishRun(run: Run, outcome: RunOutcome): Promise<RunRecord>
  /** Deletes what earlier runs of the job left and no walk needs. */
  prune(job: Job): Promise<void>
  /** Some thousand ids of the job's live rows. `from`: null, then the `next` of the call before, until that is null. */
  liveKeys(job: Job, from: string | null): Promise<{ ids: string[]; next: string | null }>
}

/**
 * The right to work on a job, until it is released, its process ends, or another one acquires the job, since this one stood still or was cut off:
 * a method that would write then throws a JobError (BUSY) and writes nothing.
 */
export interface Lease {
  job: Job
  /** Why the store cannot keep this collection's rows: it has them by another key, or a table's name is taken. */
  refusal: JobError | null
  /** Of the job's last complete full walk; null: there is none, or it had nothing to count by. */
  lastCoverage: Coverage | null
  /** As the last refresh or complete full walk saved it: what `stateOf` reads. */
  refresh: unknown
  /** Rows that the job has ever added, with the last page that was written. */
  rowsAdded: number
  /** The time of the last page that a walk of the job wrote; 0: none did. */
  lastPageAt: number
  /** What the job's row says as long as no other process has taken the job. */
  epoch: number
}

/** `heldBy`: the name of its owner. */
export type Acquired = { lease: Lease; heldBy?: never } | { lease?: never; heldBy: string }

/** What is saved of the refreshes of a job; `stateOf` reads `state`. */
export interface SavedRefresh {
  organizationId: string
  collection: string
  state: unknown
}

/** What the refreshes of all lists have used of one budget. `version` grows by 1 with each change. */
export interface StoredShare {
  budgetKey: string
  /** The time of `level`, epoch milliseconds. */
  at: number
  /** Requests that they have sent and the share has not carried yet. */
  level: number
  version: number
}

/** How a walk reads its list, and the version of the code that began it. */
export type KeptRules = WalkRules & { version: number }

/** An unfinished walk of a job, as an earlier run left it. `filters`: as `filtersText` writes them. */
export interface OpenWalk extends Pick<WalkPlan, 'origin' | 'kind' | 'firstPage'> {
  id: number
  path: string
  filters: string
  rules: KeptRules
  updatedAt: number
}

export interface BeginRun {
  trigger: Trigger
  plan: WalkPlan
  /** As `filtersText` writes them. */
  filters: string
  /** How a new walk reads its list, and one that has no page yet. */
  rules: KeptRules
  /** The open walk to resume; null: begin a new one. */
  resume: number | null
  /** Open walks that no run will resume. */
  abandon: readonly number[]
  /** In place of a refresh: if it finds nothing, its line goes with the next one. */
  brief: boolean
}

export interface Walk {
  id: number
  kind: WalkPlan['kind']
  rules: KeptRules
  /** For people; what it goes on from is the page ledger. In list order; null: the pass has reached the end of the list. */
  nextPage: number | null
  /** It continues an earlier run's walk, which has read a page. */
  resumed: boolean
  startedAt: number
  /** `rowsAdded` of the lease when it began. */
  rowsAddedBefore: number
  /** Distinct items that its earlier runs saw; rows in the words of `sync_walks`. */
  rowsSeen: number
  /** Items without a usable key that are new to the store, so far. */
  newRejects: number
}

/** One answer of a walk in the page ledger, when it was written, and its number, from 1 on. `resumed`: the first one of another process. */
export interface LedgerEntry extends Answer {
  ordinal: number
  pass: number
  why: Why
  resumed: boolean
  at: number
}

/** A row to write, of an item as it was sent and parsed. `fields`: of a changed one, what differs, each as its names from the item down. */
export interface Upsert {
  key: Key
  text: string
  value: JsonObject
  change: 'added' | 'changed'
  fields?: readonly (readonly string[])[]
}

/** A page that is asked for again: when it failed first, how it failed last, and when it is asked for next. */
export interface PageRetry {
  since: number
  until: number
  error: string
}

/** All that one page writes: rows, history, rejects, and the numbers of its run and job. Its items are no longer missed. */
export interface PageCommit {
  changes: PageChanges
  run: Run
  /** The time of what it writes. Not before that of any earlier page of the job; a refresh's is after it. */
  at: number
  /** The line in the page ledger, and the next page in list order; null: a refresh read it, and each open full walk counts its items as seen. */
  answer: { walk: Walk; entry: LedgerEntry; newToWalk: number; nextPage: number | null } | null
}

/** What a page changes in the tables of its job. `items`: duplicates included. */
export interface PageChanges {
  page: number
  items: number
  keys: readonly Key[]
  upserts: readonly Upsert[]
  rejects: readonly { id: string; reason: string; text: string }[]
}

/** `rowsAdded`: as of `Lease`, with this page. */
export interface CommitResult {
  newRejects: number
  rowsAdded: number
  notices: Notice[]
}

/** `keyed`: distinct items with a usable key that the walk saw; `isSeen`: whether it saw this one. `atOnce`: the list came in one answer, so a row that it lacks is removable at once. */
export interface MissingRule {
  walkId: number
  keyed: number
  isSeen: (id: string) => boolean
  atOnce: boolean
}

/** Rows missed by two trusted walks, or by one whose list came in one answer, and not held back; those held back already; and the job's live ones. */
export type MissingCounts = Record<'removable' | 'held' | 'live', number>

/** What happens to removable rows. */
export type Removals = 'none' | 'remove' | 'hold'

/** How many rows of a job are held back, of how many live ones. `outOfScope`: those that left with a change of filters or path. */
export interface HeldRemovals {
  rows: number
  live: number
  outOfScope: number
}

export interface WalkClosing {
  walkId: number
  run: Run
  /** The result of a complete walk; null: abandon it. */
  outcome: WalkOutcome | null
  removals: Removals
  /** What a complete full walk leaves to the next refresh; null: nothing changes. */
  refresh: RefreshState | null
}

/** What a run has sent and waited, as `countTraffic` counts it. */
export type RunTraffic = Record<'requests' | 'retries' | 'rateLimitHits' | 'rateLimitWaitMs', number>

/** A run in progress: its line of `sync_runs`, and its cost so far. */
export interface Run {
  id: number
  traffic: RunTraffic
}

/** `refused`: before its first request, so it counts as never begun. */
export interface RunOutcome {
  status: 'succeeded' | 'failed' | 'interrupted' | 'refused'
  errorCode: string | null
  errorMessage: string | null
}

/** A line of `sync_runs` at the end of its run. */
export type RunRecord = Record<'pages' | 'rowsSeen' | 'rowsAdded' | 'rowsChanged' | 'rowsRemoved', number>
