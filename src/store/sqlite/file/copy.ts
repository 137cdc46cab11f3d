import { LATEST_VERSION } from '../migrations/migrate.ts'
import type { Connection } from '../sql.ts'
import { COPY_ID, openAsItIs } from './open.ts'

/** Whether an open file is a copy, and no mirror. */
export function isCopy(connection: Connection): boolean {
  return connection.pragma('application_id', { simple: true }) === COPY_ID
}

/** The most database pages that SQLite allows. */
const MOST_PAGES = 2 ** 32 - 2

/**
 * Opens an empty file for a copy of up to so many bytes. Nothing is flushed to the disk before the caller does
 * it, and a kill leaves a useless file.
 */
export function openEmptyCopy(file: string, mostBytes: number): Connection {
  const connection = openAsItIs(file)
  // Without `main.`, the mirror that is attached later would be locked, too.
  for (const pragma of ['locking_mode = EXCLUSIVE', 'journal_mode = OFF', 'synchronous = OFF'])
    connection.pragma(`main.${pragma}`)
  connection.pragma('main.cache_size = -65536')
  // For the mirror: its reader waits while a log is recovered.
  connection.pragma('busy_timeout = 30000')
  connection.pragma(`application_id = ${COPY_ID}`)
  connection.pragma(`user_version = ${LATEST_VERSION}`)
  const pages = Math.floor(mostBytes / (connection.pragma('page_size', { simple: true }) as number))
  connection.pragma(`main.max_page_count = ${Math.min(Math.max(1, pages), MOST_PAGES)}`)
  return connection
}
