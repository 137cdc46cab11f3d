import type { Connection } from './database.ts'
import { isOwnerAlive } from './owner-probe.ts'

const NAME = 'maintenance'

interface MaintenanceNotice {
  /** The name of the lock file of the process that does it (see owners.ts). */
  owner: string
  what: string
}

/** Tells other processes who works on the file for long, and at what. They wait as long as this process lives. */
export function announceMaintenance(connection: Connection, notice: MaintenanceNotice): void {
  connection
    .prepare('INSERT OR REPLACE INTO sync_settings (name, value) VALUES (?, ?)')
    .run(NAME, JSON.stringify(notice))
}

/** Leaves the notice of another process alone. */
export function withdrawMaintenance(connection: Connection, notice: MaintenanceNotice): void {
  connection
    .prepare('DELETE FROM sync_settings WHERE name = ? AND value = ?')
    .run(NAME, JSON.stringify(notice))
}

/** What a living process does on the file for long, in words; null where none does. A killed process's notice does not count. */
export function maintenanceUnderWay(connection: Connection): string | null {
  const value = connection.prepare('SELECT value FROM sync_settings WHERE name = ?').pluck().get(NAME)
  if (typeof value !== 'string') return null
  const { owner, what } = JSON.parse(value) as MaintenanceNotice
  return isOwnerAlive(connection.name, owner) === true ? `process ${owner} is at work on it (${what})` : null
}
