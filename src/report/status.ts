import manifest from '../../package.json' with { type: 'json' }
import { isAhead } from '../clock.ts'
import type { DaemonRecord } from '../store/core/leases.ts'
import type { ListRow, MisfitColumn, StatusRow } from '../store/core/status.ts'
import { type NextStep, nextStep, type Step, stepOf, stepsOf } from './next-step.ts'
import { misfitNotes, notesOf, type Problem, problemOf, refreshNotes } from './notes.ts'
import { isOverdue, type Pace, timeLeft } from './times.ts'
import { checkExitCode, gravestFirst, isOutdated, type State, verdict } from './verdict.ts'

/** What `status` says, made once for the text, `--json`, the page, `/check`, the metrics and pings. Times are ISO 8601. */
export interface Status {
  /** Another number: a field has changed its meaning, or is gone. */
  version: 1
  program_version: string
  database: string
  /** The configuration that was read; null where `--database` named the mirror. */
  config: string | null
  now: string
  /** How things are, in a sentence. It holds nothing that a server said. */
  verdict: string
  /** What `status --check` exits with. */
  check_exit_code: number
  /** What to do, each thing once. */
  next: NextStep[]
  /** Why the mirror cannot be written; null: it can. */
  unusable: string | null
  /** Why the published file is older than the mirror: nothing could be published; null: it is not, as far as is known. */
  unpublished: string | null
  /** Every `start` that runs on the mirror, or died without being stopped; `running`: null if this user cannot tell. */
  daemon: { running: boolean | null; processes: DaemonProcess[] }
  /** What needs nobody to act. */
  notes: string[]
  jobs: JobStatus[]
}

/** `outdated`: it runs with another configuration than the file has now. */
export type DaemonProcess = Omit<DaemonRecord, 'configuration'> & { outdated: boolean }

/** What `status` says of a list: its row of `sync_status`, and what follows from it. */
export interface JobStatus extends ListRow {
  state: State
  /** What is wrong with it; null: nothing. */
  problem: Problem | null
  /** How far its walk is, and what else is worth knowing. */
  notes: string[]
  /** What to do about this list. */
  next: NextStep | null
  /** Whether a process works on it; null if this user cannot tell. */
  running: boolean | null
  walk_percent: number | null
  /** By the one estimate of `times.ts`. */
  walk_left_ms: number | null
  waiting_until: string | null
  /** Only a `start` goes by it. */
  next_run_at: string | null
  /** Null without a configuration, which has the schedule. */
  overdue: boolean | null
  /** By `--max-age` and `--fresh`; null without. */
  too_old: boolean | null
  too_stale: boolean | null
}

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

/** An age that a list may have. */
export interface MostAge {
  typed: string
  ms: number
}

export interface StatusFacts extends Pick<Status, 'database' | 'config' | 'unusable' | 'unpublished'> {
  /** Epoch milliseconds. */
  now: number
  lists: readonly ListFacts[]
  daemons: readonly DaemonProcess[]
  /** Whether the process that tells cannot read its configuration any more: a `status` that is typed exits with 2. */
  isConfigLost: boolean
  /** Whether its daemons divide the lists, as on a server; on a file each of them reads all. */
  isShared: boolean
  misfits: readonly MisfitColumn[]
  /** `--max-age` and `--fresh`. */
  maxAge: MostAge | null
  fresh: MostAge | null
}

export function createStatus(facts: StatusFacts): Status {
  const { database, config, unusable, unpublished, now, daemons } = facts
  const lists = facts.lists.map((list) => ({ ...list, row: presentRow(list.row, facts) }))
  const isSome = (running: boolean | null) => daemons.some((one) => one.running === running)
  // A `start` that runs may not have been able to write down that it does.
  const isUnknown = isSome(null) || unusable !== null
  const daemon = { running: isSome(true) ? true : isUnknown ? null : false, processes: [...daemons] }
  const restart = restartText(daemons)
  const paces = new Map(lists.filter(({ row }) => isWalking(row)).map((list) => [list, paceOf(list, now)]))
  const known = lists.map((list) => {
    const pace = paces.get(list)
    const left = pace === undefined ? null : timeLeft(pace, [...paces.values()])
    return listStatus(list, left, facts, daemon.running === true, restart)
  })
  const jobs = known.map(({ job }) => job)
  const steps = known.map(({ job, step }) => ({ state: job.state, row: job, step }))
  const told = { config, unusable, unpublished, daemon, jobs, now: new Date(now).toISOString() }
  return {
    version: 1,
    program_version: manifest.version,
    database,
    verdict: verdict(told, facts),
    check_exit_code: checkExitCode(told, facts),
    next: [
      ...stepsOfTheWhole(told, facts),
      ...stepsOf(gravestFirst(steps)).filter(({ say }) => say !== restart || say === null),
    ],
    // A refresh that was typed says nothing of how often one comes.
    notes: [
      ...misfitNotes(facts.misfits),
      ...(daemon.running === true ? refreshNotes(lists.map(({ row }) => row)) : []),
    ],
    ...told,
  }
}

/** What to do that is not about a list. */
function stepsOfTheWhole(
  { unusable, unpublished, daemon, config }: Pick<Status, 'unusable' | 'unpublished' | 'daemon' | 'config'>,
  { isShared, isConfigLost }: StatusFacts,
): NextStep[] {
  const living = daemon.processes.filter(({ running }) => running === true)
  const restart = restartText(daemon.processes)
  const steps: NextStep[] = []
  const add = (say: string, command: string | null = null) => steps.push({ say, command })
  if (unusable !== null)
    add(
      'make the mirror writable again: then everything goes on by itself, and what it holds can be queried meanwhile',
    )
  if (unpublished !== null)
    add('mend why nothing is published, which is tried again after the next runs', 'admin-mirror check')
  if (isConfigLost) add('mend the configuration file, with which no command can begin', 'admin-mirror check')
  if (restart !== null) add(restart)
  if (config !== null && daemon.processes.length > 0 && daemon.running === false)
    add('start the daemon again, by its service if it has one', 'admin-mirror start')
  if (!isShared && living.length > 1)
    add(`stop all daemons but one, since each of them reads every list: ${pids(living)}`)
  return steps
}

/** Null where no `start` has an older configuration. */
function restartText(processes: readonly DaemonProcess[]): string | null {
  const outdated = processes.filter(isOutdated)
  return outdated.length === 0
    ? null
    : `restart start (process ${pids(outdated)}), by its service if it has one: it runs with another configuration than the file has now`
}

function pids(processes: readonly DaemonProcess[]): string {
  return processes.map(({ pid }) => pid).join(', ')
}

/**
 * What is true of the row at present. A wait is told while it lasts, of a list that is being read, or whose last run failed. While the
 * mirror cannot be written, nothing comes of the work that it tells of.
 */
function presentRow(row: StatusRow, { now, unusable }: StatusFacts): StatusRow {
  const { running, waiting_until: until, last_run_status: last } = row
  const none = { waiting_for: null, waiting_until: null }
  if (unusable !== null) return { ...row, ...none, running: false, retry_since: null }
  const isMeant = running !== false || last === 'failed'
  return isMeant && waitLeft(until, now) > 0 ? row : { ...row, ...none }
}

function listStatus(
  { row, plan, tokenPlace }: ListFacts,
  walkLeft: number | null,
  facts: StatusFacts,
  isServed: boolean,
  restart: string | null,
): { job: JobStatus; step: Step | null } {
  const { now, unusable } = facts
  const isOlder = (since: string | null, most: MostAge | null) =>
    most === null ? null : row.configured === 1 && isOlderThan(since, most.ms, now)
  const tooOld = isOlder(row.as_of, facts.maxAge)
  const tooStale = isOlder(row.fresh_as_of, facts.fresh)
  const overdue = plan === null ? null : isOverdue(row, plan.dueAt, now)
  const state = stateOf(row, overdue === true)
  const isTooOld = tooOld === true || tooStale === true
  const step =
    unusable === null
      ? nextStep(row, state, now, { isTooOld, isOverdue: overdue === true, tokenPlace, isServed, restart })
      : null
  const job: JobStatus = {
    organization_id: row.organization_id,
    organization: row.organization,
    collection: row.collection,
    rows: row.rows,
    state,
    problem: problemOf(row, state, plan, now),
    notes: [],
    next: step === null ? null : stepOf(step, row),
    as_of: row.as_of,
    last_complete_at: row.last_complete_at,
    coverage: row.coverage,
    fresh_as_of: row.fresh_as_of,
    newest: row.newest,
    last_run_at: row.last_run_at,
    last_run_status: row.last_run_status,
    error_code: row.error_code,
    failing_since: row.failing_since,
    held_since: row.held_since,
    removals_held: row.removals_held,
    running: row.running,
    walk_percent: row.walk_origin === null ? null : walkPercent(row.walk_rows_seen, row.walk_total),
    walk_left_ms: walkLeft,
    waiting_until: row.waiting_until,
    // A `start` with an older configuration may have another schedule, or not know the list.
    next_run_at:
      plan?.nextRunAt == null || unusable !== null || restart !== null
        ? null
        : new Date(plan.nextRunAt).toISOString(),
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

/** Whether a run reads its pages now: how long a page that is asked for again keeps failing is not known. */
function isWalking({ running, last_run_status: status, work, retry_since: since }: StatusRow): boolean {
  return running === true && status === 'running' && work !== 'verify' && work !== 'refresh' && since === null
}

function paceOf({ row, budget, perMinute }: ListFacts, now: number): Pace {
  const { walk_rows_seen: seen, walk_total: total, walk_pages: pages } = row
  return {
    budget,
    pages: row.last_run_pages ?? 0,
    runMs: now - Date.parse(row.last_run_at ?? ''),
    waitedMs: row.last_run_waited_ms ?? 0,
    waitMs: waitLeft(row.waiting_until, now),
    // By the items of a page so far.
    pagesLeft:
      total === null || !seen || !pages ? null : Math.ceil((Math.max(total - seen, 0) * pages) / seen),
    perMinute,
  }
}

/** The gravest first, as in `STATES`. */
function stateOf(row: StatusRow, isLate: boolean): State {
  const { running, last_run_status: last } = row
  if (row.configured !== 1) return 'not configured'
  if (row.failing_code === 'DATABASE') return 'write failed'
  if (row.held_since !== null) return 'token refused'
  if (row.removals_held > 0) return 'removals held back'
  if (row.failing_since !== null) return 'failing'
  if (isLate) return 'overdue'
  if (row.retry_since !== null) return 'no answer'
  if (running === true) return 'being read'
  if (running === null && last === 'running') return 'perhaps being read'
  if (row.last_run_at === null && row.as_of === null) return 'not read yet'
  if (row.as_of === null || last === 'interrupted' || last === 'running' || row.walk_origin === 'sync')
    return 'unfinished'
  return row.untrusted === null ? 'read' : 'uncertain'
}

/** The longest wait for a rate limit; a later time was written by a wrong clock. */
const LONGEST_WAIT_MS = 86_400_000

/** Milliseconds that a wait still lasts; 0: it is over, or there is none. */
function waitLeft(until: string | null, now: number): number {
  const left = Date.parse(until ?? '') - now
  return left > 0 && left <= LONGEST_WAIT_MS ? left : 0
}

/** How far a walk is, in whole percent of its items; null if its length is unknown. Items that came meanwhile are not in its total. */
function walkPercent(seen: number | null, total: number | null): number | null {
  return seen === null || !total ? null : Math.floor((100 * Math.min(seen, total)) / total)
}
