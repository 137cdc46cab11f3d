import type { BudgetStore } from '../sync/types.ts'

// What any store knows of organizations, their tokens and budgets, beside the rows of their lists.

export interface RegisteredOrganization {
  id: string
  name: string
  collections: readonly string[]
}

/** When a job last did what its schedule demands. Epoch milliseconds. */
export interface LastRuns {
  /** The start of its last complete full walk. */
  completedAt: number | null
  /** The start of its last run by schedule or by hand, whatever its outcome. */
  startedAt: number | null
  /** Whether a sync's walk is open. */
  unfinished: boolean
}

export const NEVER_RUN: LastRuns = { completedAt: null, startedAt: null, unfinished: false }

/** At once from a file, later from a server. */
export type MaybePromise<T> = T | Promise<T>

/** Whether a token is held. */
export interface StoredHold {
  /** Why it is held; null if `resume` lifted the hold of one of its organizations. As `refresh` read it last, where there is one. */
  heldReason(): string | null
  /** Reads it, where that takes time. */
  refresh?(): Promise<void>
}

/** Each method is one short transaction. */
export interface Tokens {
  /**
   * Notes what is configured now; other organizations and jobs stay, marked as not configured. Call it first.
   */
  register(organizations: readonly RegisteredOrganization[]): Promise<void>
  /** A name for a token that reveals nothing: its hash with a salt of this mirror. */
  fingerprint(token: string): string
  /** Notes which token an organization uses now, and lifts the hold of its former token. */
  useToken(organizationId: string, fingerprint: string): Promise<void>
  holdOf(fingerprint: string): StoredHold
  /** Why an organization must not use its token. */
  heldReasonOf(organizationId: string, fingerprint: string): MaybePromise<string | null>
  hold(organizationIds: readonly string[], fingerprint: string, reason: string, at: string): Promise<void>
  liftHold(fingerprint: string): Promise<void>
  /**
   * Lifts every hold of these organizations, and ends the pauses of their budgets, also of the tokens that
   * they used last. Returns the names of those that were held.
   */
  resume(organizationIds: readonly string[]): Promise<string[]>
  budgets: BudgetStore
  lastRuns(organizationId: string, collection: string): MaybePromise<LastRuns>
  /** The same of any job, by one question, where each takes time. */
  allLastRuns?(): Promise<(organizationId: string, collection: string) => LastRuns>
}
