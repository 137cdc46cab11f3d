import fs from 'node:fs'
import type { Connection } from './database.ts'

const FOLDER = new URL('./migrations/', import.meta.url)

/** The numbered steps, in order. A step that was released is never edited: mirrors out there have it. */
const STEPS = ['0001.sql', '0002.sql', '0003.sql', '0004.sql', '0005.sql', '0006.sql']

export const LATEST_VERSION = STEPS.length

/** Brings the file's own tables up to date, all steps in one transaction, so that a kill leaves the old schema or the new one. */
export function migrate(connection: Connection): void {
  const pending = () => STEPS.slice(connection.pragma('user_version', { simple: true }) as number)
  if (pending().length === 0) return
  const run = connection.transaction(() => {
    // Asked again under the lock: another process may have been faster.
    const steps = pending()
    for (const step of steps) connection.exec(fs.readFileSync(new URL(step, FOLDER), 'utf8'))
    if (steps.length > 0) connection.pragma(`user_version = ${LATEST_VERSION}`)
  })
  run.immediate()
}
