import type { StatusRow } from '../store/sqlite/read/status.ts'

/**
 * How far the open walk is, in whole percent of its items, and how long a running one still takes: at the speed of its run
 * so far, and not less than the present wait. Null for what the mirror does not know.
 */
export function walkProgress(row: StatusRow, now: number) {
  const { walk_rows_seen: seen, walk_total: total } = row
  if (row.walk_origin === null || seen === null || total === null || total === 0)
    return { walk_percent: null, walk_left_ms: null }
  // An item that came since the first answer is no part of its total.
  const walkPercent = Math.floor((100 * Math.min(seen, total)) / total)
  return { walk_percent: walkPercent, walk_left_ms: timeLeft(row, Math.max(total - seen, 0), now) }
}

/** One page tells nothing of the speed: its request may have waited. */
const LEAST_PAGES = 2

function timeLeft(row: StatusRow, items: number, now: number): number | null {
  const { running, last_run_status: status, last_run_pages: pages, last_run_rows_seen: rows } = row
  const isOfRun = running === true && status === 'running'
  if (!isOfRun || row.last_run_at === null || row.walk_updated_at === null) return null
  if (pages === null || rows === null || pages < LEAST_PAGES || rows === 0) return null
  const spent = Date.parse(row.walk_updated_at) - Date.parse(row.last_run_at)
  const wait = row.waiting_until === null ? 0 : Date.parse(row.waiting_until) - now
  return Math.round(Math.max((spent / rows) * items, wait, 0))
}
