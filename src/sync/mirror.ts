import type { HeldRemovals, HoldReason, Missing } from './removals.ts'
import type { SeenItems } from './seen-items.ts'
import type {
  Checkpoint,
  Job,
  LedgerEntry,
  OpenWalk,
  PageCommit,
  Run,
  RunOutcome,
  RunRecord,
  SavedPage,
  Trigger,
  Walk,
  WalkBeginning,
  WalkOutcome,
} from './types.ts'

/** Whether a job is ours now; if not, the name of the process that has it. */
export type Claim = { taken: true } | { taken: false; owner: string }

/** The mirror as the page loop sees it. Asynchronous, so that a writer elsewhere can stand behind it one day. */
export interface Mirror {
  /** Takes a job for this process, unless another living one has it. */
  claimJob(job: Job): Promise<Claim>
  releaseJob(job: Job): Promise<void>
  openWalks(job: Job): Promise<OpenWalk[]>
  beginWalk(job: Job, beginning: WalkBeginning): Promise<Walk>
  resumeWalk(walkId: number): Promise<Walk>
  /** The answers of a walk after this one, in their order: up to 500 of them, none at the ledger's end. */
  readLedger(walkId: number, after: number): Promise<LedgerEntry[]>
  beginRun(job: Job, walk: Walk, trigger: Trigger): Promise<number>
  /** Undoes `beginRun`: the run was refused before its first request. */
  cancelRun(runId: number): Promise<void>
  /** Throws `CONFIGURATION` where the collection's rows are kept by another key. */
  assertKey(job: Job): Promise<void>
  savePage(commit: PageCommit): Promise<SavedPage>
  /** The next pass begins: nothing but the checkpoint. */
  saveCheckpoint(walk: Walk, next: Checkpoint): Promise<void>
  /** Items of the walk that could not be placed and had never come before. */
  newRejects(walk: Walk): Promise<number>
  /**
   * Notes the live rows that a trusted walk did not see, in steps; a walk that was killed in between is judged again.
   * `atOnce`: the list came in one answer, so that to have missed a row once is enough for it to be due.
   */
  findMissing(job: Job, walk: Walk, seen: SeenKeys, atOnce: boolean): Promise<Missing>
  /** Has all rows that are due be held back, in steps. Null: for the reason that others are held for. */
  holdMissing(job: Job, why: HoldReason | null): Promise<void>
  /** Removes all rows that are due or held back, in steps. */
  removeMissing(job: Job, run: Run): Promise<void>
  /**
   * Returns what is held back of the job's rows. By a full walk that is trusted rows are known to be listed.
   */
  completeWalk(job: Job, walk: Walk, outcome: WalkOutcome): Promise<HeldRemovals | null>
  abandonWalk(walkId: number): Promise<void>
  finishRun(run: Run, outcome: RunOutcome): Promise<RunRecord>
  /** Takes away what earlier runs of the job left behind and nobody needs any more, a little at a time. */
  prune(job: Job): Promise<void>
}

/** The items with a usable key that a walk has seen. */
export type SeenKeys = Pick<SeenItems, 'keyed' | 'has'>

/** What one reading of a list asks of a mirror. */
export type WalkKeeper = Pick<Mirror, 'savePage' | 'saveCheckpoint' | 'abandonWalk'>
