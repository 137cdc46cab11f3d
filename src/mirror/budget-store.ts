import { type Connection, guarded } from './database.ts'
import type { Transact } from './transaction.ts'

/** The budget of a rate limit, as those who spend it keep it. Times are epoch milliseconds, 0 for none. */
export interface StoredBudget {
  closedUntil: number
  known: string | null
  waitingFor: string | null
  waitingUntil: number
}

/** `sync_gates`: the budgets of rate limits, each by its scope. */
export interface BudgetStore {
  /** `version`: another one after each change, and never empty. */
  read(scope: string): Promise<StoredBudget & { version: string }>
  /** Writes what `next` returns if the version is still this one; false if not. `next` is called with the lock in hand. */
  compareAndSet(scope: string, version: string, next: () => StoredBudget): Promise<boolean>
  /** Ends the pauses that an organization may wait for, inside the caller's transaction. */
  forgetWaits(organizationId: string): void
}

export function createBudgetStore(connection: Connection, write: Transact): BudgetStore {
  const find = connection.prepare(
    'SELECT closed_until, known, waiting_for, waiting_until FROM sync_gates WHERE scope = ?',
  )
  const save = connection.prepare(`
    INSERT OR REPLACE INTO sync_gates (scope, closed_until, known, waiting_for, waiting_until)
    VALUES (:scope, :closed_until, :known, :waiting_for, :waiting_until)
  `)
  // What was sent in the last minute still counts.
  const endPauses = connection.prepare(`
    UPDATE sync_gates
    SET closed_until = '${NEVER}'
    WHERE scope IN ('all', ?) OR scope = (SELECT last_fingerprint FROM organizations WHERE id = ?)
  `)
  const rowOf = (scope: string) => (find.get(scope) as Row | undefined) ?? NO_ROW

  return {
    read: async (scope) => {
      const row = guarded(connection.name, () => rowOf(scope))
      return { ...storedOf(row), version: versionOf(row) }
    },
    compareAndSet: (scope, version, next) =>
      write(() => {
        if (versionOf(rowOf(scope)) !== version) return false
        save.run({ scope, ...rowFrom(next()) })
        return true
      }),
    forgetWaits: (organizationId) => {
      endPauses.run(organizationId, organizationId)
    },
  }
}

interface Row {
  closed_until: string
  known: string | null
  waiting_for: string | null
  waiting_until: string | null
}

const NEVER = new Date(0).toISOString()

const NO_ROW: Row = { closed_until: NEVER, known: null, waiting_for: null, waiting_until: null }

/** The content itself: while it is the same, a decision by it is still right. */
function versionOf({ closed_until, known }: Row): string {
  return `${closed_until} ${known}`
}

function storedOf(row: Row): StoredBudget {
  const { closed_until, known, waiting_for: waitingFor, waiting_until } = row
  const waitingUntil = waiting_until ? Date.parse(waiting_until) : 0
  return { closedUntil: Date.parse(closed_until), known, waitingFor, waitingUntil }
}

function rowFrom({ closedUntil, known, waitingFor, waitingUntil }: StoredBudget): Row {
  const waiting_until = waitingUntil === 0 ? null : new Date(waitingUntil).toISOString()
  return { closed_until: new Date(closedUntil).toISOString(), known, waiting_for: waitingFor, waiting_until }
}
