import type { Connection } from './database.ts'
import { isOwnerAlive } from './owners.ts'

const NAME = 'maintenance'

export interface MaintenanceNotice {
  /** The name of the lock file of the process that does it (see owners.ts). */
  owner: string
  what: string
}

/**
 * Says who works on the file for long, and at what: other processes wait as long as that one lives. Returns false, and changes
 * nothing, where another living process has said so. Inside an immediate transaction.
 */
export function announceMaintenance(connection: Connection, notice: MaintenanceNotice): boolean {
  if (maintenanceUnderWay(connection, notice.owner) !== null) return false
  connection
    .prepare('INSERT OR REPLACE INTO sync_settings (name, value) VALUES (?, ?)')
    .run(NAME, JSON.stringify(notice))
  return true
}

export function withdrawMaintenance(connection: Connection): void {
  connection.prepare('DELETE FROM sync_settings WHERE name = ?').run(NAME)
}

/**
 * What a living process does on the file for long, in words; null where none does. The notice of a killed process does not
 * count, nor that of `own`, the process that asks.
 */
export function maintenanceUnderWay(connection: Connection, own?: string): string | null {
  const value = connection.prepare('SELECT value FROM sync_settings WHERE name = ?').pluck().get(NAME)
  if (typeof value !== 'string') return null
  const { owner, what } = JSON.parse(value) as MaintenanceNotice
  const isAtWork = owner !== own && isOwnerAlive(connection.name, owner) === true
  return isAtWork ? `process ${owner} is at work on it (${what})` : null
}
