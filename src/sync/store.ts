import type { JobError } from '../errors.ts'
import type { JsonObject } from '../json/value.ts'
import type { ListPosition, Question } from './coverage/state.ts'
import type { ListedItem } from './items.ts'
import type { Key } from './key.ts'
import type { Checkpoint, Job, Notice, Trigger, WalkOutcome, WalkPlan } from './types.ts'

/**
 * All that `sync` asks of the place where the rows are kept. Each method is one transaction: sets go in, sets come out, and
 * nothing is half done. Throws MirrorError when the store cannot be used. test/store/contract.ts says what each one promises.
 */
export interface Store {
  /** Takes a job for this process, unless another living process has it. */
  acquire(job: Job): Promise<Acquired>
  release(lease: Lease): Promise<void>
  /** The job's unfinished walks, the oldest first. */
  openWalks(job: Job): Promise<OpenWalk[]>
  /** Begins or resumes a walk, and opens the run's line. Runs of the job that died are closed. */
  beginRun(lease: Lease, begin: BeginRun): Promise<{ runId: number; walk: Walk }>
  /** Up to 500 answers of a walk that come after this one, in their order; none at the end of the page ledger. */
  readLedger(walkId: number, after: number): Promise<LedgerEntry[]>
  /**
   * How each item compares with what is stored of it, in the same order: with its row, or its reject if it has no usable key.
   * Writes nothing.
   */
  lookup(job: Job, items: readonly ListedItem[]): Promise<StoredItem[]>
  /** Writes one answer with its checkpoint. */
  commit(lease: Lease, page: PageCommit): Promise<CommitResult>
  /** Notes the live rows that a trusted walk did not see. The same walk may be judged any number of times. */
  findMissing(lease: Lease, rule: MissingRule): Promise<MissingCounts>
  /** Ends a walk, and does with the rows that it found missing what the caller decided. */
  closeWalk(lease: Lease, end: WalkClosing): Promise<ClosedWalk>
  /** Closes the run's line; one that was refused before its first request leaves none. */
  finishRun(lease: Lease, run: Run, outcome: RunOutcome): Promise<RunRecord>
  /** Deletes what earlier runs of the job left behind and no walk needs. */
  prune(job: Job): Promise<void>
  /** Some thousand ids of the job's live rows; `from`: the `next` of the call before, which is null after the last ones. */
  liveKeys(job: Job, from: string | null): Promise<{ ids: string[]; next: string | null }>
}

/** The right to work on a job, until it is released or the process ends. */
export interface Lease {
  job: Job
  /** Why the store cannot keep this collection's rows: they have another key, or the name of its tables is taken. */
  refusal: JobError | null
  /** How the job's last complete full walk ended; null when it has none. */
  lastWalk: Pick<WalkOutcome, 'coverage' | 'totalOff'> | null
  /** Nothing of the list is stored, and no walk of it ever began. */
  isNeverSynced: boolean
}

export type Acquired = { lease: Lease; heldBy?: never } | { lease?: never; heldBy: string }

/** An unfinished walk of a job, as an earlier run left it. */
export interface OpenWalk {
  id: number
  origin: 'sync' | 'backfill'
  kind: 'full' | 'partial'
  path: string
  /** As `filtersText` writes them. */
  filters: string
  firstPage: number
  /** Epoch milliseconds. */
  updatedAt: number
}

export interface BeginRun {
  trigger: Trigger
  plan: WalkPlan
  /** As `filtersText` writes them. */
  filters: string
  /** Where a new walk starts. */
  first: Checkpoint
  /** The open walk to resume; null: a new one begins. */
  resume: number | null
  /** Open walks that no run resumes any more. */
  abandon: readonly number[]
}

export interface Walk {
  id: number
  kind: 'full' | 'partial'
  firstPage: number
  checkpoint: Checkpoint
  /** Whether it continues where an earlier run stopped. A walk without a page yet starts when it is taken up. */
  resumed: boolean
  /** Distinct items that earlier runs of it saw. */
  rowsSeen: number
  /** Items without a usable key that came for the first time, so far. */
  newRejects: number
}

/** One answer of a walk, as the page ledger keeps it. */
export interface LedgerEntry {
  /** The number of the answer within its walk, from 1 on. */
  ordinal: number
  pass: number
  page: number
  total: number | null
  why: Question['why']
  /** Of the page's items, in the order of the list. */
  ids: readonly string[]
  /** Where each of these items was found; null for one that was known before. Null as a whole: all stand in this answer, in their order. */
  positions: readonly (ListPosition | null)[] | null
}

/** `same`: stored with exactly this text. `different`: stored with another one. */
export type StoredItem = { state: 'absent' } | { state: 'same' } | { state: 'different'; text: string }

/** A row to write: of items that did not change there is none. */
export interface Upsert {
  key: Key
  /** The item as it was sent, and the same with exact numbers. */
  text: string
  value: JsonObject
  change: 'added' | 'changed'
}

/** One answer as it is written: rows, history, ledger, counters and checkpoint, all or nothing. */
export interface PageCommit {
  walk: Walk
  run: Run
  /** Null where a pass begins: only the checkpoint is written then. */
  answer: CommittedAnswer | null
  next: Checkpoint
}

export interface CommittedAnswer {
  entry: LedgerEntry
  /** How many items the page held, the same one twice counted twice. */
  items: number
  newToWalk: number
  keys: readonly Key[]
  upserts: readonly Upsert[]
  rejects: readonly { id: string; reason: string; text: string }[]
}

export interface CommitResult {
  newRejects: number
  notices: Notice[]
}

export interface MissingRule {
  walkId: number
  /** Distinct items with a usable key that the walk saw. */
  listed: number
  /** The list came in one answer: a row that it does not hold is removable at once. */
  atOnce: boolean
}

export interface MissingCounts {
  /** Missed by two trusted walks, or by one whose list came in one answer, and not held back. */
  removable: number
  held: number
  /** Live rows of the job. */
  live: number
}

/** Why rows were held back: more than the brake lets go, or a list without items. */
export type HoldReason = 'brake' | 'empty'

/** What happens to removable rows; `earlier`: they are held back for the reason of those that are held already. */
export type Removals = 'none' | 'remove' | { hold: HoldReason | 'earlier' }

/** The rows of a job that are held back, of how many live ones, and why. */
export interface HeldRemovals {
  rows: number
  live: number
  why: HoldReason
}

export interface WalkClosing {
  walk: Pick<Walk, 'id' | 'kind'>
  run: Run
  /** How a complete walk came out; null: it is abandoned. */
  outcome: WalkOutcome | null
  removals: Removals
}

export interface ClosedWalk {
  /** What is held back of the job's rows. */
  held: HeldRemovals | null
}

/** The numbers of a run that the page loop counts itself. */
export interface RunTraffic {
  requests: number
  retries: number
  rateLimitHits: number
  rateLimitWaitMs: number
}

/** A run in progress: its line of `sync_runs`, and what it has cost so far. */
export interface Run {
  id: number
  traffic: RunTraffic
}

/** `refused`: before its first request, so that it counts as never begun. */
export interface RunOutcome {
  status: 'succeeded' | 'failed' | 'interrupted' | 'refused'
  errorCode: string | null
  errorMessage: string | null
}

/** A line of `sync_runs` at the end of its run. */
export interface RunRecord {
  pages: number
  rowsSeen: number
  rowsAdded: number
  rowsChanged: number
  rowsRemoved: number
}
