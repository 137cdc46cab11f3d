import { grouped, inWords } from '../../text.ts'
import type { Trigger } from '../types.ts'
import { type WalkPace, walkLeft, walkPercent } from '../walk-left.ts'

/** What the mirror knows of the work of another process on a job. Times are ISO 8601. */
export interface OwnerWork {
  /** Whether that process is a `start`. */
  isDaemon: boolean
  /** Whether it compares the list: then it has no run. */
  isVerify: boolean
  /** Null: none has begun. */
  run: RunningRun | null
}

/** A run that has not ended, and how far its walk is; of a refresh, only that it began. */
export interface RunningRun extends WalkPace {
  trigger: Trigger
  /** Null: all pages are read. */
  nextPage: number | null
}

/**
 * `the scheduler of process 4711`, `process 4711 on worker-2`. `name`: that of its lock, from `newLockName` or `workerName`, or
 * `another process`, whose name is not written yet.
 */
export function ownerName(name: string, work: OwnerWork | null): string {
  const [, host, pid] = /^(?:(.*)-)?(\d+)-[0-9a-f]{12}$/.exec(name) ?? []
  const process = pid === undefined ? name : `process ${pid}${host ? ` on ${host}` : ''}`
  return work?.isDaemon ? `the scheduler of ${process}` : process
}

/** `is working on it (page 51, 25 %, about 12 minutes left)`. */
export function workText(work: OwnerWork | null, now: number): string {
  if (work?.isVerify) return 'is comparing it with the API (verify)'
  const run = work?.run
  if (!run) return 'is working on it (about to begin)'
  if (run.trigger === 'refresh') return 'is refreshing it'
  const left = leftOf(work, now)
  const percent = walkPercent(run.walkSeen, run.total)
  const parts = [
    ...(run.trigger === 'backfill' ? ['a backfill'] : []),
    run.nextPage === null ? 'all pages read' : `page ${grouped(run.nextPage)}`,
    ...(percent === null ? [] : [`${percent} %`]),
    ...(left === null ? [] : [`about ${inWords(left)} left`]),
  ]
  return `is working on it (${parts.join(', ')})`
}

/** How long its work still takes about, if that is known. Milliseconds. */
export function leftOf(work: OwnerWork | null, now: number): number | null {
  return work?.run ? walkLeft(work.run, now) : null
}
