import { isOwnerAlive, ownerState } from './leases.ts'
import type { Connection } from './sql.ts'

// A `start` names itself in `sync_settings`, since its lock file alone looks like that of any command.

const PREFIX = 'daemon '

/** A `start` that has not ended in good order. */
export interface DaemonRecord {
  pid: number
  /** When it began. */
  since: string
  /** Whether it lives; null if this user cannot tell. */
  running: boolean | null
}

/** Notes that this process is a `start`. Forgets those that have died. Call it inside a transaction. */
export function announceDaemon(connection: Connection, owner: string, since: string): void {
  const remove = connection.prepare('DELETE FROM sync_settings WHERE name = ?')
  for (const other of ownersIn(connection))
    if (isOwnerAlive(connection.name, other.owner) === false) remove.run(PREFIX + other.owner)
  connection
    .prepare('INSERT OR REPLACE INTO sync_settings (name, value) VALUES (?, ?)')
    .run(PREFIX + owner, since)
}

/** Notes that this process ends as it was told to. Call it inside a transaction. */
export function withdrawDaemon(connection: Connection, owner: string): void {
  connection.prepare('DELETE FROM sync_settings WHERE name = ?').run(PREFIX + owner)
}

/**
 * Every `start` that runs, or died. One that was stopped has left no lock file, and no record unless the file is a copy from before
 * then. The oldest first. `own`: the name of this process's lock file, which must not be opened here.
 */
export function readDaemons(connection: Connection, file: string, own: string | null = null): DaemonRecord[] {
  return ownersIn(connection).flatMap(({ owner, since }) => {
    const state = owner === own ? 'alive' : ownerState(file, owner)
    const running = state && state === 'alive'
    return state === 'gone' ? [] : [{ pid: Number.parseInt(owner, 10), since, running }]
  })
}

/** Anyone who may write the mirror can change these records. */
function ownersIn(connection: Connection): { owner: string; since: string }[] {
  const sql = 'SELECT name, value FROM sync_settings WHERE name GLOB ? ORDER BY value, name LIMIT 100'
  const rows = connection.prepare(sql).all(`${PREFIX}*`) as { name: string; value: string }[]
  return rows
    .map(({ name, value }) => ({ owner: name.slice(PREFIX.length), since: value }))
    .filter(({ owner, since }) => /^\d{1,10}-[0-9a-f]{12}$/.test(owner) && isTime(since))
}

function isTime(text: string): boolean {
  return /^\d{4}-\d\d-\d\dT[\d:.]{8,12}Z$/.test(text) && !Number.isNaN(Date.parse(text))
}
