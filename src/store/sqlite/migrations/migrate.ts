import fs from 'node:fs'
import type { Connection } from '../driver.ts'

const FOLDER = new URL('.', import.meta.url)

/** The numbered steps of tables, in order; views are made after them, by `core/views.ts`. A released step is never edited: existing mirrors have it. */
const STEPS = [
  '0001-tables-of-the-interface.sql',
  '0002-shared-budgets.sql',
  '0003-page-ledger-with-reasons.sql',
  '0004-removals.sql',
  '0005-rejects-key-first.sql',
  '0006-expected-missed.sql',
  '0007-removals-by-sets.sql',
  '0008-refreshes.sql',
  '0009-types-of-status.sql',
  '0010-values-of-columns.sql',
  '0011-order-of-events.sql',
  '0012-failing.sql',
  '0013-work-of-owners.sql',
  '0014-versions-of-budgets.sql',
  '0015-shares-of-refreshes.sql',
  '0016-columns-of-elements.sql',
]

export const LATEST_VERSION = STEPS.length

/** Brings our own tables up to date, and then those of collections by `complete`, in one transaction: a kill leaves the old schema or the new one. */
export function migrate(connection: Connection, complete: () => void): void {
  const pending = () => STEPS.slice(connection.pragma('user_version', { simple: true }) as number)
  if (pending().length === 0) return
  const run = connection.transaction(() => {
    // Read again under the lock: another process may have been faster.
    const steps = pending()
    for (const step of steps) connection.exec(fs.readFileSync(new URL(step, FOLDER), 'utf8'))
    if (steps.length === 0) return
    complete()
    connection.pragma(`user_version = ${LATEST_VERSION}`)
  })
  run.immediate()
}
