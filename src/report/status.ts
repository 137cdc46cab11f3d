import type { QueueDepth } from '../store/postgres/read/queue.ts'
import type { DaemonRecord } from '../store/sqlite/daemons.ts'
import type { JobStatus } from './job-status.ts'
import { checkExitCode, verdict } from './verdict.ts'

/** Raised when a field changes its meaning or goes; new fields leave it. */
export const STATUS_VERSION = 1 as const

/** The output of `status --json`: `admin-mirror schema status` describes it. Fields may be added, never changed. */
export interface Status {
  version: number
  database: string
  now: string
  /** How things are, in a sentence. */
  verdict: string
  /** What `status --check` exits with: 0, 1, 3 or 5. */
  check_exit_code: number
  daemon: DaemonStatus
  /** What waits for the workers of a mirror that several share; null for one in a file. */
  queue: QueueDepth | null
  /** Of the schedules; null without a configuration. */
  timezone: string | null
  /** The end of the rate limit's pause; null if there is none. */
  waiting_until: string | null
  /** `--max-age` and `--fresh` as typed. */
  max_age: string | null
  fresh: string | null
  /** Where the configuration asks for more than the rate limit carries. */
  advice: string[]
  jobs: JobStatus[]
}

/** Every `start` on this mirror. */
export interface DaemonStatus {
  /** Null if this user cannot tell. */
  running: boolean | null
  /** Those that run, or died without being stopped. */
  processes: DaemonRecord[]
}

/** Completes what `status` says. */
export function createStatus(
  facts: Omit<Status, 'version' | 'verdict' | 'check_exit_code' | 'daemon' | 'advice'> &
    Partial<Pick<Status, 'advice'>>,
  daemons: readonly DaemonRecord[],
): Status {
  const { database, now, advice = [], ...others } = facts
  const daemon = daemonStatus(daemons)
  return {
    version: STATUS_VERSION,
    database,
    now,
    verdict: verdict({ ...facts, daemon }),
    check_exit_code: checkExitCode(facts.jobs),
    daemon,
    advice,
    ...others,
  }
}

function daemonStatus(processes: readonly DaemonRecord[]): DaemonStatus {
  const isSome = (running: boolean | null) => processes.some((one) => one.running === running)
  return { running: isSome(true) ? true : isSome(null) ? null : false, processes: [...processes] }
}
