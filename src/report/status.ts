import manifest from '../../package.json' with { type: 'json' }
import { isAhead } from '../clock.ts'
import type { DaemonRecord } from '../store/core/leases.ts'
import type { ListRow, MisfitColumn, StatusRow } from '../store/core/status.ts'
import { misfitText, notesOf, type Problem, problemOf } from './list-text.ts'
import { type NextStep, nextStep, stepsOf, stepsOfTheWhole } from './next-step.ts'
import { timeLeft } from './time-left.ts'
import { checkExitCode, gravestFirst, isOverdue, type State, stateOf, verdict } from './verdict.ts'

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
  /** Every `start` that runs on the mirror, or died without being stopped; `running`: null while none could write down that it does. */
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
  /** Whether a process works on it; null in a copy. */
  running: boolean | null
  walk_percent: number | null
  walk_left_ms: number | null
  waiting_until: string | null
  /** Only a `start` goes by it. */
  next_run_at: string | null
  /** Null without a configuration, which has the schedule. */
  overdue: boolean | null
  /** Of the last run that failed, while the list is failing. */
  failing_code: string | null
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
  /** The columns of `sync_status`. */
  columns: readonly (keyof ListRow)[]
  daemons: readonly DaemonProcess[]
  /** Whether the process that tells cannot read its configuration any more: a `status` that is typed exits with 2. */
  isConfigLost: boolean
  misfits: readonly MisfitColumn[]
  /** `--max-age` and `--fresh`. */
  maxAge: MostAge | null
  fresh: MostAge | null
}

export function createStatus(facts: StatusFacts): Status {
  const { database, config, unusable, unpublished, now, isConfigLost } = facts
  const processes = [...facts.daemons]
  const isServed = processes.some(({ running }) => running)
  const isOutdated = processes.some(({ outdated }) => outdated)
  const known = facts.lists.map((list) => {
    const row = presentRow(list, facts)
    const job = jobStatus(row, list.plan, facts)
    const isTooOld = job.too_old === true || job.too_stale === true
    const context = { isTooOld, tokenPlace: list.tokenPlace, isServed, isOutdated }
    return {
      list: job,
      state: job.state,
      step: unusable === null ? nextStep(row, job.state, context) : null,
    }
  })
  const told = {
    now: new Date(now).toISOString(),
    config,
    unusable,
    unpublished,
    // While the mirror cannot be written, a `start` that runs may not have been able to say that it does.
    daemon: { running: isServed || (unusable === null ? false : null), processes },
    jobs: known.map(({ list }) => list),
  }
  return {
    version: 1,
    program_version: manifest.version,
    database,
    verdict: verdict(told, isConfigLost),
    check_exit_code: checkExitCode(told, isConfigLost),
    next: [...stepsOfTheWhole(told, isConfigLost), ...stepsOf(gravestFirst(known))],
    notes: [
      ...(unpublished === null ? [] : [`nothing could be published: ${unpublished}`]),
      ...facts.misfits.map(misfitText),
    ],
    ...told,
  }
}

/** A later time was written by a wrong clock. */
const LONGEST_WAIT_MS = 86_400_000

/**
 * What is true of the row at present. A wait is told while it lasts, of a list that is being read, or should have been. While the
 * mirror cannot be written, nothing comes of the work that it tells of.
 */
function presentRow({ row, plan }: ListFacts, { now, unusable }: StatusFacts): StatusRow {
  const none = { waiting_for: null, waiting_until: null }
  if (unusable !== null) return { ...row, ...none, running: false, retry_since: null }
  const left = Date.parse(row.waiting_until ?? '') - now
  const isUnread = row.last_run_at === null || row.walk_origin !== null || plan?.dueAt != null
  const isMeant = row.running || row.last_run_status === 'failed' || isUnread
  return isMeant && left > 0 && left <= LONGEST_WAIT_MS ? row : { ...row, ...none }
}

function jobStatus(row: StatusRow, plan: JobPlan | null, facts: StatusFacts): JobStatus {
  const { now, maxAge, fresh, unusable, daemons } = facts
  const { walk_origin, walk_rows_seen: seen, walk_total: total } = row
  const isOlder = (since: string | null, most: MostAge | null) => {
    if (most === null) return null
    const isKnown = since !== null && !isAhead(since, now)
    return row.configured === 1 && (!isKnown || now - Date.parse(since) > most.ms)
  }
  const overdue = plan && isOverdue(row, plan.dueAt, now)
  const state = stateOf(row, overdue === true)
  // A `start` with an older configuration may have another schedule, or not know the list.
  const isPlanKnown = unusable === null && !daemons.some(({ outdated }) => outdated)
  const nextRunAt = isPlanKnown ? (plan?.nextRunAt ?? null) : null
  const job: JobStatus = {
    ...(Object.fromEntries(facts.columns.map((name) => [name, row[name]])) as unknown as ListRow),
    state,
    problem: problemOf(row, state, plan),
    notes: [],
    running: row.running,
    // Items that came meanwhile are not in its total.
    walk_percent:
      walk_origin === null || seen === null || !total
        ? null
        : Math.floor((100 * Math.min(seen, total)) / total),
    walk_left_ms: walkLeft(row, now),
    waiting_until: row.waiting_until,
    next_run_at: nextRunAt === null ? null : new Date(nextRunAt).toISOString(),
    overdue,
    failing_code: row.failing_since === null ? null : row.failing_code,
    too_old: isOlder(row.as_of, maxAge),
    too_stale: isOlder(row.fresh_as_of, fresh),
  }
  job.notes = notesOf(row, job, facts)
  return job
}

/** How long a run that reads its pages now still takes. */
function walkLeft(row: StatusRow, now: number): number | null {
  const { running, last_run_at: began, waiting_until: until, work } = row
  const { walk_rows_seen: seen, walk_total: total, walk_pages: pages } = row
  if (!running || began === null || work === null || work === 'verify' || work === 'refresh') return null
  return timeLeft({
    pages: row.last_run_pages ?? 0,
    runMs: now - Date.parse(began),
    waitMs: until === null ? 0 : Date.parse(until) - now,
    // By the items of a page so far.
    pagesLeft:
      total === null || !seen || !pages ? null : Math.ceil((Math.max(total - seen, 0) * pages) / seen),
  })
}
