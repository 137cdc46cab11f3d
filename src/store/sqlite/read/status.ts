import { jobLines, type StatusRow, statusOf } from '../../core/status.ts'
import { runRule, SQLITE } from '../driver.ts'
import { isOwnerAlive } from '../leases.ts'
import type { Connection } from '../sql.ts'

/**
 * All jobs that `sync_status` shows, by organization and collection. `own`: the name of this process's lock file, if it has
 * one; it lives, and must not be opened here.
 */
export function readStatus(connection: Connection, file: string, own: string | null = null): StatusRow[] {
  const columns = {
    sync_status: columnsOf(connection, 'sync_status'),
    sync_jobs: columnsOf(connection, 'sync_jobs'),
  }
  const read = () =>
    runRule(
      connection,
      jobLines(SQLITE, (table, column) => columns[table].has(column)),
    )
  const first = read()
  const states = new Map<string, boolean | null>(own === null ? [] : [[own, true]])
  for (const { owner } of first)
    if (owner !== null && !states.has(owner)) states.set(owner, isOwnerAlive(file, owner))
  // An owner without a lock may have finished after its name was read: read what it left.
  const lines = [...states.values()].includes(false) ? read() : first
  return lines.map((line) => {
    // An owner that took the job after the first reading lives.
    const running = line.owner !== null && (states.has(line.owner) ? (states.get(line.owner) ?? null) : true)
    return statusOf(line, running)
  })
}

function columnsOf(connection: Connection, view: string): Set<string> {
  const names = connection.prepare('SELECT name FROM pragma_table_info(?)').pluck().all(view) as string[]
  return new Set(names)
}
