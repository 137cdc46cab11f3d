import { z } from 'zod'
import manifest from '../../package.json' with { type: 'json' }
import type { DaemonRecord } from '../store/core/leases.ts'
import type { StatusRow } from '../store/core/status.ts'
import { waitLeft, walkLeft, walkPercent } from '../sync/owner-work.ts'
import { ON_HOLD } from '../text.ts'
import { backfillCommand, forgetCommand, nextStep } from './next-step.ts'
import { checkExitCode, isAhead, isOverdue, verdict } from './verdict.ts'

// The contract of `status --json`, for programs that read it. Fields
// may be added, never changed.

const time = () => z.string().describe('ISO 8601, UTC, milliseconds')
const count = () => z.int().min(0)

const Backfill = z.object({
  kind: z.enum(['full', 'partial']),
  filters: z.record(z.string(), z.unknown()),
  first_page: count(),
  page: count().nullable().describe('The next one; null: behind the last'),
  rows_seen: count(),
  total: count().nullable(),
  updated_at: time(),
  is_last_run: z.boolean(),
  next: z.string().describe('The command that continues it'),
})

const Freshness = {
  rows: count().describe('Live rows'),
  as_of: time().nullable().describe('Start of the last complete full walk'),
  last_complete_at: time().nullable().describe('Its end'),
  coverage: z.enum(['steady', 'repaired', 'drifted']).nullable(),
  fresh_as_of: time().nullable(),
  newest: z.enum(['first', 'last']).nullable(),
  refreshed_every_ms: z
    .number()
    .nullable()
    .describe(
      'Milliseconds between two refreshes, as the rate limit allowed last; null before the first one',
    ),
  age_ms: z.int().nullable().describe('Milliseconds since as_of'),
  too_old: z.boolean().nullable().describe('By --max-age; null without it'),
  too_stale: z.boolean().nullable().describe('By --fresh; null without it'),
}

const Schedule = {
  schedule: z.string().nullable(),
  next_run_at: time().nullable().describe('The next time of the schedule; only a start goes by it'),
  due_at: time().nullable().describe('The first time of the schedule since the last run ended'),
  overdue: z.boolean().nullable().describe('Whether it should have been read by now'),
}

const LastRun = {
  last_run_at: time().nullable(),
  last_run_status: z.enum(['running', 'succeeded', 'failed', 'interrupted']).nullable(),
  last_run_trigger: z.string().nullable(),
  error_code: z.string().nullable(),
  error_message: z.string().nullable(),
}

const Trouble = {
  failing_since: time()
    .nullable()
    .describe('End of the first run that failed since one succeeded; null: it is not failing'),
  failing_by: z
    .enum(['walk', 'refresh'])
    .nullable()
    .describe(
      'refresh: a part of the list failed, and any run that succeeds ends it; walk: only a full walk ends it',
    ),
  failing_code: z.string().nullable().describe('error_code of the last run that failed'),
  failing_message: z.string().nullable(),
  removals_held: count(),
  held_why: z.enum(['brake', 'empty']).nullable(),
  untrusted: z.string().nullable().describe('Why the last complete full walk removes nothing'),
  total_is_wrong: z.boolean(),
  rows_missed: count(),
  held_since: time().nullable().describe('When its token was refused'),
  held_reason: z.string().nullable(),
  forget: z.string().nullable().describe('For a list that is no longer configured'),
  next: z.string().nullable().describe('What to type or do; null: nothing'),
}

const Progress = {
  running: z.boolean().nullable().describe('Whether a process works on it; null: this user cannot tell'),
  work: z
    .enum(['schedule', 'manual', 'backfill', 'refresh', 'verify'])
    .nullable()
    .describe('What that process does; null: nothing, or it is about to begin'),
  retry_since: time()
    .nullable()
    .describe('When the page that is being retried first failed; null: none is being retried'),
  retry_until: time().nullable().describe('When that page is asked for next'),
  retry_error: z.string().nullable().describe('How the page failed last'),
  walk_origin: z.enum(['sync', 'backfill']).nullable(),
  walk_page: count().nullable(),
  walk_pages: count().nullable(),
  walk_rows_seen: count().nullable(),
  walk_total: count().nullable(),
  walk_started_at: time().nullable(),
  walk_updated_at: time().nullable(),
  walk_percent: z.int().min(0).max(100).nullable(),
  walk_left_ms: count().nullable().describe('At the speed so far'),
  waiting_for: z.string().nullable(),
  waiting_until: time().nullable(),
  backfills: z.array(Backfill),
}

const Job = z.object({
  organization_id: z.string(),
  organization: z.string(),
  collection: z.string(),
  configured: z.boolean(),
  ...Freshness,
  ...Schedule,
  ...LastRun,
  ...Trouble,
  ...Progress,
})

export const StatusSchema = z
  .object({
    version: z.literal(1).describe('Another number: a field has changed its meaning, or is gone'),
    program_version: z.string().describe('Version of the admin-mirror that wrote this'),
    database: z.string(),
    now: time(),
    verdict: z.string().describe('How things are, in a sentence'),
    check_exit_code: z.literal([0, 1, 3, 4, 5]).describe('What status --check exits with'),
    unusable: z.string().nullable().describe('Why the mirror cannot be written; null: it can'),
    daemon: z.object({
      running: z.boolean().nullable().describe('Whether a start runs; null: this user cannot tell'),
      processes: z
        .array(z.object({ pid: count(), since: time(), running: z.boolean().nullable() }))
        .describe('Those that run, or died without being stopped'),
    }),
    queue: z
      .object({
        waiting: count().describe('Lists that no worker has taken yet'),
        oldest_ms: count().nullable().describe('How long the first of them has waited; null if none waits'),
        running: count().describe('Lists that workers have taken'),
        failed: count().describe('Runs of the last hour that failed'),
      })
      .nullable()
      .describe('Of a mirror on a PostgreSQL server; null for one in a file'),
    timezone: z.string().nullable(),
    waiting_until: time().nullable(),
    max_age: z.string().nullable().describe('As typed'),
    fresh: z.string().nullable().describe('As typed'),
    advice: z
      .array(z.string())
      .describe('What to change where the configuration asks for more than the rate limit carries'),
    refreshes: z
      .array(z.string())
      .describe(
        'A sentence for each rate limit: how its lists share the part that refreshes may use; none until that is known',
      ),
    notes: z
      .array(z.string())
      .describe('What needs nobody to act: columns whose values do not fit them, or that became empty'),
    jobs: z.array(Job),
  })
  .meta({ title: 'admin-mirror status --json' })

/** The output of `status --json`. */
export type Status = z.infer<typeof StatusSchema>

/** Every `start` on this mirror. */
export type DaemonStatus = Status['daemon']

/** Completes what `status` says. */
export function createStatus(
  facts: Omit<Status, 'version' | 'program_version' | 'verdict' | 'check_exit_code' | 'daemon'>,
  daemons: readonly DaemonRecord[],
): Status {
  const daemon = daemonStatus(daemons)
  return {
    version: 1,
    program_version: manifest.version,
    verdict: verdict({ ...facts, daemon }),
    check_exit_code: checkExitCode(facts),
    daemon,
    ...facts,
  }
}

function daemonStatus(processes: readonly DaemonRecord[]): DaemonStatus {
  const isSome = (running: boolean | null) => processes.some((one) => one.running === running)
  return { running: isSome(true) ? true : isSome(null) ? null : false, processes: [...processes] }
}

/** A job in the output of `status --json`. */
export type JobStatus = Status['jobs'][number]

/** Columns of a row that are not shown: other fields are computed from them. */
const INTERNAL = [
  'last_sync_finished_at',
  'tried_since',
  'last_run_pages',
  'last_run_rows_seen',
  'refresh_share',
  'token',
] as const

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
  /** `--max-age` and `--fresh` in milliseconds, or null. */
  maxAge?: number | null
  fresh?: number | null
  /** Null without a configuration. */
  plan?: JobPlan | null
  /** Where the token of its organization is; null without a configuration. */
  tokenPlace?: string | null
}

/** A job as `status` shows it. */
export function jobStatus(row: StatusRow, context: JobContext): JobStatus {
  const { now, maxAge = null, fresh = null, plan = null, tokenPlace = null } = context
  const isConfigured = row.configured === 1
  // After `resume` the last error is still that of the refused token.
  const lastError = (text: string | null) => (row.held_since ? text : (text?.split(` ${ON_HOLD}`)[0] ?? null))
  const known = { ...row, ...presentWait(row, now) }
  const isOlder = (since: string | null, most: number | null) =>
    most === null
      ? null
      : isConfigured && (since === null || now - Date.parse(since) > most || isAhead(since, now))
  const tooOld = isOlder(row.as_of, maxAge)
  const tooStale = isOlder(row.fresh_as_of, fresh)
  const overdue = plan === null ? null : isOverdue(known, plan.dueAt, now)
  const isTooOld = tooOld === true || tooStale === true
  return {
    ...withoutInternal(known),
    configured: isConfigured,
    error_message: lastError(row.error_message),
    failing_message: lastError(row.failing_message),
    backfills: row.backfills.map((walk) => ({ ...walk, next: backfillCommand(row, walk) })),
    age_ms: row.as_of === null ? null : now - Date.parse(row.as_of),
    too_old: tooOld,
    too_stale: tooStale,
    schedule: plan?.schedule ?? null,
    next_run_at: timeText(plan?.nextRunAt),
    due_at: timeText(plan?.dueAt),
    overdue,
    ...walkProgress(known, now),
    forget: isConfigured ? null : forgetCommand(row),
    next: nextStep(known, now, { isTooOld, isOverdue: overdue === true, tokenPlace }),
  }
}

function withoutInternal(row: StatusRow) {
  const hidden = new Set<string>(INTERNAL)
  const shown = Object.entries(row).filter(([name]) => !hidden.has(name))
  return Object.fromEntries(shown) as Omit<StatusRow, (typeof INTERNAL)[number]>
}

function timeText(ms: number | null | undefined): string | null {
  return ms == null ? null : new Date(ms).toISOString()
}

/** The wait of a job that runs, or whose last run failed, while it lasts. */
function presentWait({ running, waiting_for, waiting_until, last_run_status: last }: StatusRow, now: number) {
  const isMeant = running !== false || (last !== null && last !== 'succeeded')
  return isMeant && waitLeft(waiting_until, now) > 0
    ? { waiting_for, waiting_until }
    : { waiting_for: null, waiting_until: null }
}

/**
 * How far the open walk is, in whole percent of its items, and how long a running one still takes: at the speed of its run
 * so far, and not less than the present wait. Null for what the mirror does not know.
 */
export function walkProgress(row: StatusRow, now: number) {
  const { walk_rows_seen: walkSeen, walk_total: total } = row
  const percent = row.walk_origin === null ? null : walkPercent(walkSeen, total)
  return { walk_percent: percent, walk_left_ms: percent === null ? null : walkTimeLeft(row, now) }
}

function walkTimeLeft(row: StatusRow, now: number): number | null {
  const { running, last_run_status: status, last_run_pages: pages, last_run_rows_seen: rowsSeen } = row
  // How long a page that is being retried will keep failing is not known.
  const isOfRun =
    running === true && status === 'running' && row.work !== 'verify' && row.retry_since === null
  if (!isOfRun || row.last_run_at === null || pages === null || rowsSeen === null) return null
  return walkLeft(
    {
      startedAt: row.last_run_at,
      pages,
      rowsSeen,
      walkSeen: row.walk_rows_seen,
      total: row.walk_total,
      updatedAt: row.walk_updated_at,
      waitingUntil: row.waiting_until,
    },
    now,
  )
}
