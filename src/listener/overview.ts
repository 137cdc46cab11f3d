import type { Status } from '../report/status.ts'
import type { MirrorSize, NewColumn, RunsShown } from '../store/core/overview.ts'
import type { Counters } from './metrics.ts'

/** What the page and the metrics show, read at one moment. */
export interface Overview {
  version: string
  /** When this process began; ISO 8601. */
  started_at: string
  status: Status
  /** By `jobKey` of text.ts. */
  runs: ReadonlyMap<string, RunsShown>
  budgets: readonly BudgetUse[]
  counters: Counters
  /** Columns of the last seven days. */
  new_columns: readonly NewColumn[]
  size: MirrorSize
  /** Null if the configuration publishes nothing. */
  published: Published | null
}

/** The requests that this process sent with one budget in the last hour. */
export interface BudgetUse {
  /** Names of the organizations that share it. */
  organizations: readonly string[]
  requests: number
  /** How many of them were answered with 429. */
  throttled: number
  /** Requests a minute that we may send; null if nothing is known to limit them. */
  per_minute: number | null
}

export interface Published {
  file: string
  /** When it was made; null if it is not there yet. */
  created_at: string | null
  bytes: number | null
}

/** Whether the process is well, for probes. */
export interface Health {
  /** Null if the scheduler ticks; else what is wrong. */
  stalled: string | null
  /** Null if the mirror can be used; else why not. */
  unusable: string | null
}

/** What the listener answers from. Called at most once a second; a call may take some tens of milliseconds. */
export interface StatusSource {
  health(): Health | Promise<Health>
  /** Throws MirrorError. */
  overview(): Overview | Promise<Overview>
}
