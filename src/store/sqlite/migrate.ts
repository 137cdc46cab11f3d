import { LATEST_VERSION, stepsFrom } from '../schema.ts'
import type { Connection } from './driver.ts'

/** Brings our own tables up to date, and then makes the views by `complete`, in one transaction: a kill leaves the old schema or the new one. */
export function migrate(connection: Connection, complete: () => void): void {
  const version = () => connection.pragma('user_version', { simple: true }) as number
  if (version() === LATEST_VERSION) return
  const run = connection.transaction(() => {
    // Read again under the lock: another process may have been faster.
    if (version() === LATEST_VERSION) return
    for (const step of stepsFrom(version(), 'file')) connection.exec(step)
    complete()
    connection.pragma(`user_version = ${LATEST_VERSION}`)
  })
  run.immediate()
}
