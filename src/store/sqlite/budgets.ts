import type { StoredBudgets } from '../tokens.ts'
import { translatingErrors } from './file/open.ts'
import type { Connection } from './sql.ts'
import type { Transact } from './transaction.ts'

/** `sync_gates`: the budgets of requests, by scope; `next` runs under the file's lock. */
interface SqliteBudgets extends StoredBudgets {
  /** Ends the pauses that an organization may wait for. Call it inside a transaction. */
  forgetWaits(organizationId: string): void
}

export function createStoredBudgets(connection: Connection, write: Transact): SqliteBudgets {
  const find = connection.prepare('SELECT closed_until, known FROM sync_gates WHERE scope = ?')
  const save = connection.prepare(`
    INSERT OR REPLACE INTO sync_gates (scope, closed_until, known, waiting_for, waiting_until)
    VALUES (?, ?, ?, ?, ?)
  `)
  // Requests of the last minute still count.
  const endPauses = connection.prepare(`
    UPDATE sync_gates
    SET closed_until = '${NO_ROW.closed_until}'
    WHERE scope IN ('all', ?) OR scope = (SELECT last_fingerprint FROM organizations WHERE id = ?)
  `)
  const rowOf = (scope: string) => (find.get(scope) as Row | undefined) ?? NO_ROW

  return {
    read: async (scope) => {
      const row = translatingErrors(connection.name, () => rowOf(scope))
      return { closedUntil: Date.parse(row.closed_until), known: row.known, version: versionOf(row) }
    },
    compareAndSet: (scope, version, next) =>
      write(() => {
        if (versionOf(rowOf(scope)) !== version) return null
        const { closedUntil, known, waitingFor, waitingUntil } = next()
        const closed_until = timeOf(closedUntil)
        save.run(scope, closed_until, known, waitingFor, waitingUntil === 0 ? null : timeOf(waitingUntil))
        return versionOf({ closed_until, known })
      }),
    forgetWaits: (organizationId) => {
      endPauses.run(organizationId, organizationId)
    },
  }
}

interface Row {
  closed_until: string
  known: string | null
}

const NO_ROW: Row = { closed_until: timeOf(0), known: null }

function timeOf(ms: number): string {
  return new Date(ms).toISOString()
}

/** The content itself: while it is the same, a decision based on it is still right. */
function versionOf({ closed_until, known }: Row): string {
  return `${closed_until} ${known}`
}
