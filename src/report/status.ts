import type { z } from 'zod'
import type { DaemonRecord } from '../store/sqlite/daemons.ts'
import type { StatusSchema } from './status-schema.ts'
import { checkExitCode, verdict } from './verdict.ts'

/** The output of `status --json`. */
export type Status = z.infer<typeof StatusSchema>

/** Every `start` on this mirror. */
export type DaemonStatus = Status['daemon']

/** Completes what `status` says. */
export function createStatus(
  facts: Omit<
    Status,
    'version' | 'verdict' | 'check_exit_code' | 'daemon' | 'advice' | 'notes' | 'unusable'
  > &
    Partial<Pick<Status, 'advice' | 'notes' | 'unusable'>>,
  daemons: readonly DaemonRecord[],
): Status {
  const { database, now, advice = [], notes = [], unusable = null, ...others } = facts
  const daemon = daemonStatus(daemons)
  return {
    version: 1,
    database,
    now,
    verdict: verdict({ ...facts, unusable, daemon }),
    check_exit_code: checkExitCode({ ...facts, unusable }),
    unusable,
    daemon,
    advice,
    notes,
    ...others,
  }
}

function daemonStatus(processes: readonly DaemonRecord[]): DaemonStatus {
  const isSome = (running: boolean | null) => processes.some((one) => one.running === running)
  return { running: isSome(true) ? true : isSome(null) ? null : false, processes: [...processes] }
}
