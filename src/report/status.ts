import manifest from '../../package.json' with { type: 'json' }
import type { DaemonRecord } from '../store/core/leases.ts'
import type { StatusRow } from '../store/core/status.ts'
import type { QueueDepth } from '../store/postgres/read/status.ts'
import { waitLeft, walkPercent } from '../sync/owner-work.ts'
import { isStopped, nextStep, type Step, stepsText, stepText } from './next-step.ts'
import { notesOf, problemOf, withoutHold } from './notes.ts'
import { type Pace, timeLeft } from './time-left.ts'
import { checkExitCode, isAhead, isOutdated, isOverdue, verdict } from './verdict.ts'

/** What `status` says, made once for the text, `--json`, the page, `/check`, the metrics and pings. Times are ISO 8601. */
export interface Status {
  /** Another number: a field has changed its meaning, or is gone. */
  version: 1
  program_version: string
  database: string
  now: string
  /** How things are, in a sentence. */
  verdict: string
  /** What `status --check` exits with. */
  check_exit_code: 0 | 1 | 3 | 4 | 5
  /** What to do, each thing once. */
  next: string[]
  /** Why the mirror cannot be written; null: it can. */
  unusable: string | null
  /** Every `start` that runs on the mirror, or died without being stopped; `running`: null if this user cannot tell. */
  daemon: { running: boolean | null; processes: DaemonProcess[] }
  /** Of a mirror on a server: what waits for the workers. */
  queue: QueueDepth | null
  /** Of the configuration; null without one. */
  timezone: string | null
  /** As typed. */
  max_age: string | null
  fresh: string | null
  /** What needs nobody to act. */
  notes: string[]
  jobs: JobStatus[]
}

/** `outdated`: it runs with another configuration than the file has now. */
export type DaemonProcess = Omit<DaemonRecord, 'configuration'> & { outdated: boolean }

/** What `status` says of a list. */
export interface JobStatus
  extends Pick<
    StatusRow,
    | 'organization_id'
    | 'organization'
    | 'collection'
    | 'rows'
    | 'as_of'
    | 'last_complete_at'
    | 'coverage'
    | 'fresh_as_of'
    | 'newest'
    | 'last_run_at'
    | 'last_run_status'
    | 'error_code'
    | 'error_message'
    | 'failing_since'
    | 'failing_code'
    | 'removals_held'
    | 'held_since'
    | 'running'
  > {
  configured: boolean
  state: State
  /** What is wrong with it, and since when; null: nothing. */
  problem: string | null
  problem_since: string | null
  /** How far its walk is, and what else is worth knowing. */
  notes: string[]
  /** What to do about this list. */
  next: string | null
  walk_percent: number | null
  /** By the one estimate of `time-left.ts`. */
  walk_left_ms: number | null
  /** Since when the page that its run asks for gets no answer, and the error code; null: it does. */
  no_answer_since: string | null
  no_answer_code: string | null
  waiting_until: string | null
  /** Only a `start` goes by it. */
  next_run_at: string | null
  overdue: boolean | null
  /** By `--max-age` and `--fresh`; null without. */
  too_old: boolean | null
  too_stale: boolean | null
}

export type State =
  | 'token held'
  | 'removals held'
  | 'failing'
  | 'overdue'
  | 'no answer'
  | 'being read'
  | 'unfinished'
  | 'not read yet'
  | 'uncertain'
  | 'read'
  | 'not configured'

/** The times of a list's schedule around the present. Epoch milliseconds. */
export interface JobPlan {
  schedule: string
  nextRunAt: number | null
  /** The first time since `lastAttempt` that is past; null if none is. */
  dueAt: number | null
}

/** A list of the mirror or of the configuration, and what its configuration says. */
export interface ListFacts {
  row: StatusRow
  /** Null without a configuration. */
  plan: JobPlan | null
  /** Where its token is; null without a configuration. */
  tokenPlace: string | null
  /** The rate budget that it spends, and the requests a minute that this allows; null: no limit is known. */
  budget: string
  perMinute: number | null
}

export interface StatusFacts
  extends Pick<Status, 'database' | 'unusable' | 'queue' | 'timezone' | 'max_age' | 'fresh' | 'notes'> {
  /** Epoch milliseconds. */
  now: number
  lists: readonly ListFacts[]
  daemons: readonly DaemonProcess[]
  /** `--max-age` and `--fresh` in milliseconds. */
  maxAgeMs: number | null
  freshMs: number | null
}

export function createStatus(facts: StatusFacts): Status {
  const { database, unusable, queue, timezone, max_age, fresh, notes, daemons } = facts
  const { lists, now } = facts
  const isSome = (running: boolean | null) => daemons.some((one) => one.running === running)
  const daemon = { running: isSome(true) ? true : isSome(null) ? null : false, processes: [...daemons] }
  const walking = walkingLists(lists)
  const known = lists.map((list) => listStatus(list, facts, walking, daemon.running === true))
  const jobs = known.map(({ job }) => job)
  const time = new Date(now).toISOString()
  const told = { unusable, queue, timezone, max_age, fresh, daemon, jobs, now: time }
  return {
    version: 1,
    program_version: manifest.version,
    database,
    verdict: verdict(told),
    check_exit_code: checkExitCode(told),
    next: [...ofTheWhole(told), ...stepsText(known.map(({ job: row, step }) => ({ row, step })))],
    notes,
    ...told,
  }
}

/** What to do that is not about a list. */
function ofTheWhole({
  unusable,
  daemon,
  timezone,
  queue,
}: Pick<Status, 'unusable' | 'daemon' | 'timezone' | 'queue'>) {
  const living = daemon.processes.filter(({ running }) => running === true)
  const outdated = daemon.processes.filter(isOutdated).map(({ pid }) => pid)
  const isDead = timezone !== null && daemon.processes.length > 0 && daemon.running === false
  return [
    ...(unusable === null ? [] : ['mend what is said above; nothing is written until then']),
    ...(outdated.length === 0
      ? []
      : [
          `restart start (process ${outdated.join(', ')}), by its service if it has one: it runs with another configuration than the file has now`,
        ]),
    ...(isDead ? ['start the daemon again, by its service if it has one: admin-mirror start'] : []),
    // Workers that share a mirror divide the lists. On a file each daemon reads every list.
    ...(queue || living.length < 2
      ? []
      : [
          `stop all daemons but one, since each of them reads every list: ${living.map(({ pid }) => pid).join(', ')}`,
        ]),
  ]
}

function listStatus(
  list: ListFacts,
  facts: StatusFacts,
  walking: Walking,
  isServed: boolean,
): { job: JobStatus; step: Step | null } {
  const { now, maxAgeMs, freshMs } = facts
  const { plan, tokenPlace } = list
  const row = facts.unusable === null ? withPresentWait(list.row, now) : withoutWork(list.row)
  const isConfigured = row.configured === 1
  const isOlder = (since: string | null, most: number | null) =>
    most === null ? null : isConfigured && isOlderThan(since, most, now)
  const tooOld = isOlder(row.as_of, maxAgeMs)
  const tooStale = isOlder(row.fresh_as_of, freshMs)
  const overdue = plan === null ? null : isOverdue(row, plan.dueAt, now)
  const isTooOld = tooOld === true || tooStale === true
  const step = nextStep(row, now, { isTooOld, isOverdue: overdue === true, tokenPlace, isServed })
  const percent = row.walk_origin === null ? null : walkPercent(row.walk_rows_seen, row.walk_total)
  const left = percent === null || !isWalking(row) ? null : timeLeft(paceOf(list, walking, now))
  const state = stateOf(row, overdue === true, step)
  const problem = problemOf(row, state, plan)
  const job: JobStatus = {
    organization_id: row.organization_id,
    organization: row.organization,
    collection: row.collection,
    configured: isConfigured,
    rows: row.rows,
    state,
    problem: problem.text,
    problem_since: problem.since,
    notes: [],
    next: step === null ? null : stepText(step, row),
    as_of: row.as_of,
    last_complete_at: row.last_complete_at,
    coverage: row.coverage,
    fresh_as_of: row.fresh_as_of,
    newest: row.newest,
    last_run_at: row.last_run_at,
    last_run_status: row.last_run_status,
    error_code: row.error_code,
    error_message: withoutHold(row, row.error_message),
    failing_since: row.failing_since,
    failing_code: row.failing_code,
    held_since: row.held_since,
    removals_held: row.removals_held,
    running: row.running,
    walk_percent: percent,
    walk_left_ms: left,
    no_answer_since: row.retry_since,
    no_answer_code: row.retry_since === null ? null : (row.retry_error?.split(':')[0] ?? null),
    waiting_until: row.waiting_until,
    next_run_at: plan?.nextRunAt == null ? null : new Date(plan.nextRunAt).toISOString(),
    overdue,
    too_old: tooOld,
    too_stale: tooStale,
  }
  job.notes = notesOf(row, job, facts)
  return { job, step }
}

function isOlderThan(since: string | null, most: number, now: number): boolean {
  return since === null || isAhead(since, now) || now - Date.parse(since) > most
}

/** The wait of a list that is being read, or whose last run failed, while it lasts. */
function withPresentWait(row: StatusRow, now: number): StatusRow {
  const { running, waiting_until: until, last_run_status: last } = row
  const isMeant = running !== false || (last !== null && last !== 'succeeded')
  return isMeant && waitLeft(until, now) > 0 ? row : { ...row, waiting_for: null, waiting_until: null }
}

/** While the mirror cannot be written, nothing comes of the work that it tells of: that is how far it was. */
function withoutWork(row: StatusRow): StatusRow {
  return { ...row, running: false, retry_since: null, waiting_for: null, waiting_until: null }
}

/** Whether a run reads its pages now: how long a page that is asked for again keeps failing is not known. */
function isWalking({ running, last_run_status: status, work, retry_since: since }: StatusRow): boolean {
  return running === true && status === 'running' && work !== 'verify' && work !== 'refresh' && since === null
}

/** The lists that are being read, by the rate budget that they spend. */
type Walking = ReadonlyMap<string, readonly { row: StatusRow; pages: number; pagesLeft: number | null }[]>

function walkingLists(lists: readonly ListFacts[]): Walking {
  const walking = lists.filter(({ row }) => isWalking(row))
  const paces = walking.map(({ row, budget }) => ({
    budget,
    row,
    pages: row.last_run_pages ?? 0,
    pagesLeft: pagesLeft(row),
  }))
  return Map.groupBy(paces, ({ budget }) => budget)
}

function paceOf({ row, budget, perMinute }: ListFacts, walking: Walking, now: number): Pace {
  return {
    pages: row.last_run_pages ?? 0,
    runMs: now - Date.parse(row.last_run_at ?? ''),
    waitedMs: row.last_run_waited_ms ?? 0,
    waitMs: waitLeft(row.waiting_until, now),
    pagesLeft: pagesLeft(row),
    perMinute,
    others: (walking.get(budget) ?? []).filter((one) => one.row !== row),
  }
}

/** By the items of a page so far. */
function pagesLeft({ walk_rows_seen: seen, walk_total: total, walk_pages: pages }: StatusRow): number | null {
  if (seen === null || total === null || pages === null || pages === 0 || seen === 0) return null
  return Math.ceil((Math.max(total - seen, 0) * pages) / seen)
}

/** The gravest first. */
function stateOf(row: StatusRow, overdue: boolean, step: Step | null): State {
  if (row.configured !== 1) return 'not configured'
  if (row.held_since !== null) return 'token held'
  if (row.removals_held > 0) return 'removals held'
  if (row.failing_since !== null) return 'failing'
  if (overdue) return 'overdue'
  if (row.retry_since !== null) return 'no answer'
  if (row.running === true) return 'being read'
  if (row.as_of === null) return row.last_run_at === null ? 'not read yet' : 'unfinished'
  if (isStopped(row) || row.walk_origin === 'sync') return 'unfinished'
  if (row.untrusted !== null || step !== null) return row.untrusted === null ? 'unfinished' : 'uncertain'
  return 'read'
}
