import type { StatusRow } from '../store/status.ts'
import { walkLeft, walkPercent } from '../sync/walk-left.ts'

/**
 * How far the open walk is, in whole percent of its items, and how long a running one still takes: at the speed of its run
 * so far, and not less than the present wait. Null for what the mirror does not know.
 */
export function walkProgress(row: StatusRow, now: number) {
  const { walk_rows_seen: walkSeen, walk_total: total } = row
  const percent = row.walk_origin === null ? null : walkPercent(walkSeen, total)
  return { walk_percent: percent, walk_left_ms: percent === null ? null : timeLeft(row, now) }
}

function timeLeft(row: StatusRow, now: number): number | null {
  const { running, last_run_status: status, last_run_pages: pages, last_run_rows_seen: rowsSeen } = row
  // Nothing tells how long a page fails that is asked for again.
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
