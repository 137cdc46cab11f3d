import type { BudgetStore, StoredBudget } from '../../sync/types.ts'
import type { Server } from './server/server.ts'

/** A permit that was written so long after its time counts too early, and is written again. Milliseconds. */
const LATE_MS = 250

/** A server that is always so slow is late by a known time. */
const MOST_TRIES = 3

interface Row {
  closed: number
  known: string | null
  version: number
}

/** `sync_gates`: the budgets of requests, by scope. One statement each: the version decides who was first. */
export function createBudgets(server: Server, now: () => number): BudgetStore {
  async function write(scope: string, version: number, budget: StoredBudget): Promise<number | null> {
    const { closedUntil, known, waitingFor, waitingUntil } = budget
    const values = [
      scope,
      timeOf(closedUntil),
      known,
      waitingFor,
      waitingUntil === 0 ? null : timeOf(waitingUntil),
    ]
    const rows =
      version === 0
        ? await server.rows<Row>(INSERT, values)
        : await server.rows<Row>(UPDATE, [...values, version])
    return rows[0]?.version ?? null
  }

  return {
    read: async (scope) => {
      const [row] = await server.rows<Row>(SELECT, [scope])
      return { closedUntil: row?.closed ?? 0, known: row?.known ?? null, version: String(row?.version ?? 0) }
    },
    async compareAndSet(scope, version, next) {
      let written: number | null = Number(version)
      for (let tries = 0; tries < MOST_TRIES; tries++) {
        const begun = now()
        written = await write(scope, written, next())
        if (written === null) return null
        if (now() - begun <= LATE_MS) break
      }
      return String(written)
    },
  }
}

const SELECT = 'SELECT closed_until AS closed, known, version FROM sync_gates WHERE scope = $1'

const INSERT = `
  INSERT INTO sync_gates (scope, closed_until, known, waiting_for, waiting_until)
  VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (scope) DO NOTHING
  RETURNING version
`

const UPDATE = `
  UPDATE sync_gates
  SET closed_until = $2, known = $3, waiting_for = $4, waiting_until = $5, version = version + 1
  WHERE scope = $1 AND version = $6
  RETURNING version
`

function timeOf(ms: number): string {
  return new Date(ms).toISOString()
}
