import { printable } from '../../text.ts'
import type { Connection } from './file/open.ts'
import { isOwnerAlive } from './leases.ts'

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
  const notice = parseNotice(value)
  if (notice === null || notice.owner === own) return null
  const { owner, what } = notice
  return isOwnerAlive(connection.name, owner) === true
    ? `process ${printable(owner, 40)} is at work on it (${printable(what)})`
    : null
}

/** Null for a text that this program did not write: anybody who may write the mirror can change it. */
function parseNotice(text: string): MaintenanceNotice | null {
  try {
    const { owner, what } = JSON.parse(text) as Record<keyof MaintenanceNotice, unknown>
    return typeof owner === 'string' && typeof what === 'string' ? { owner, what } : null
  } catch {
    return null
  }
}
