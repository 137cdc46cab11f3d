import type { StatusRow } from '../store/status.ts'
import { asCalled } from '../text.ts'
import { backfillCommand, forgetCommand, nextStep } from './next-step.ts'
import { isOverdue } from './overdue.ts'
import type { Status } from './status.ts'
import { walkProgress } from './walk-progress.ts'

/** A job in the output of `status --json`. */
export type JobStatus = Status['jobs'][number]

/** What other fields are computed from. */
type Internal = 'last_sync_at' | 'last_sync_finished_at' | 'last_run_pages' | 'last_run_rows_seen'

/** The times of a job's schedule around the present. Epoch milliseconds. */
export interface JobPlan {
  schedule: string
  nextRunAt: number | null
  /** The first time since `lastAttempt` that is past; null if none is. */
  dueAt: number | null
}

export interface JobContext {
  /** Epoch milliseconds. */
  now: number
  /** ` --config FILE` as it was typed, or nothing: the end of commands that users paste. */
  configOption: string
  /** `--max-age` and `--fresh` in milliseconds, or null. */
  maxAge?: number | null
  fresh?: number | null
  /** Null without a configuration. */
  plan?: JobPlan | null
}

/** A job as `status` tells of it. */
export function jobStatus(row: StatusRow, context: JobContext): JobStatus {
  const { now, configOption, maxAge = null, fresh = null, plan = null } = context
  const isConfigured = row.configured === 1
  const pasteable = (text: string) => asCalled(text, configOption)
  const pasteableOrNull = (text: string | null) => (text === null ? null : pasteable(text))
  const known = { ...row, ...waitOf(row, now) }
  const isOlder = (time: string | null, most: number | null) =>
    most === null ? null : isConfigured && (time === null || now - Date.parse(time) > most)
  const tooOld = isOlder(row.as_of, maxAge)
  const tooStale = isOlder(row.fresh_as_of, fresh)
  const overdue = plan === null ? null : isOverdue(known, plan.dueAt, now)
  const next = nextStep(known, now, tooOld === true || tooStale === true, overdue === true)
  return {
    ...withoutInternal(known),
    configured: isConfigured,
    error_message: pasteableOrNull(row.error_message),
    failing_message: pasteableOrNull(row.failing_message),
    held_reason: pasteableOrNull(row.held_reason),
    retry_error: pasteableOrNull(row.retry_error),
    backfills: row.backfills.map((walk) => ({ ...walk, next: pasteable(backfillCommand(row, walk)) })),
    age_ms: row.as_of === null ? null : now - Date.parse(row.as_of),
    too_old: tooOld,
    too_stale: tooStale,
    schedule: plan?.schedule ?? null,
    next_run_at: timeText(plan?.nextRunAt),
    due_at: timeText(plan?.dueAt),
    overdue,
    ...walkProgress(known, now),
    forget: isConfigured ? null : pasteable(forgetCommand(row)),
    next: pasteableOrNull(next),
  }
}

function withoutInternal(row: StatusRow): Omit<StatusRow, Internal> {
  const {
    last_sync_at: _at,
    last_sync_finished_at: _finished,
    last_run_pages: _pages,
    last_run_rows_seen: _rows,
    ...shown
  } = row
  return shown
}

function timeText(time: number | null | undefined): string | null {
  return time == null ? null : new Date(time).toISOString()
}

/** The longest wait for a rate limit; a later time was written by a wrong clock. */
const LONGEST_WAIT_MS = 86_400_000

/** The wait of a job that runs, or whose last run failed, while it lasts. */
function waitOf({ running, waiting_for, waiting_until, last_run_status: last }: StatusRow, now: number) {
  const wait = Date.parse(waiting_until ?? '') - now
  const isMeant = running !== false || (last !== null && last !== 'succeeded')
  const isWaiting = isMeant && wait > 0 && wait <= LONGEST_WAIT_MS
  return isWaiting ? { waiting_for, waiting_until } : { waiting_for: null, waiting_until: null }
}
