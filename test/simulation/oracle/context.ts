import type { VirtualClock } from '../clock.ts'
import { splitJob } from '../happening.ts'
import type { SimulatedProcess } from '../process.ts'
import type { Setting } from '../setting.ts'

/** What every part of the oracle works with. It knows what happened, and of the mirror only what any reader sees. */
export interface OracleContext extends Pick<VirtualClock, 'now' | 'wall' | 'wasSet'> {
  setting: Setting
  mirror: MirrorReader
  /** The token that a process would use for an organization now. */
  tokenOf(process: SimulatedProcess, organization: string): string
  /** Whether somebody outside has held the mirror's write lock at any time since then. */
  wasLockedSince(time: number): boolean
  /** A promise is broken. */
  complain(what: string, job?: string): void
  /** Something that is no breach, and is counted. */
  note(what: string): void
}

export type Row = Record<string, unknown>

/** What `sync_status` says of a job. */
interface StatusRow {
  rows: number
  as_of: string | null
  fresh_as_of: string | null
  newest: 'first' | 'last' | null
  removals_held: number
}

export type MirrorReader = ReturnType<typeof readerOf>

/** Reads what any reader of the mirror may, in plain SQL. */
export function readerOf(rows: (sql: string, ...values: unknown[]) => Row[]) {
  /** Rows of a job in a table or view that names its organization and collection. */
  const ofJob = (job: string, select: string, and = '', ...values: unknown[]) =>
    rows(`${select} WHERE organization_id = ? AND collection = ? ${and}`, ...splitJob(job), ...values)
  const status = 'SELECT rows, as_of, fresh_as_of, newest, removals_held FROM sync_status'
  const statusOf = (job: string) => ofJob(job, status)[0] as unknown as StatusRow | undefined
  return { rows, ofJob, statusOf }
}

/** As the mirror writes times. */
export function iso(ms: number): string {
  return new Date(ms).toISOString()
}
