import type { BudgetStore, StoredBudget } from '../../sync/types.ts'
import { timeOf } from '../core/sql.ts'
import { SERVER_TIME, type ServerClock } from './server/clock.ts'
import type { Server } from './server/server.ts'

/** A permit that was written so long after its time, or by a wrong clock, counts too early, and is written again. Milliseconds. */
export const LATE_MS = 250

/** A server that is always so slow is late by a known time. */
export const MOST_TRIES = 3

interface Row {
  closed: number
  known: string | null
  /** Null: nothing is known of this scope. */
  version: number | null
  /** Why the token of this scope is held. */
  held: string | null
  /** The server's time. */
  at: number
}

interface Written {
  version: number | null
  /** By our clock, which was right. */
  isOnTime: boolean
}

/**
 * `sync_gates`: the budgets of requests, by scope. One statement each: the version decides who was first. `beginAsking` is
 * called before each, and its result gets why the token that the scope names is held: a request asks the server once.
 */
export function createBudgets(
  server: Server,
  clock: ServerClock,
  beginAsking: (scope: string) => (held: string | null) => void,
): BudgetStore {
  /** What others wrote, as a write that they were faster than has found it: it need not be read again. */
  const found = new Map<string, Row>()

  async function write(scope: string, version: number, budget: StoredBudget): Promise<Written> {
    const { closedUntil, known, waitingFor, waitingUntil } = budget
    const values = [
      scope,
      timeOf(closedUntil),
      known,
      waitingFor,
      waitingUntil === 0 ? null : timeOf(waitingUntil),
    ]
    const noteHold = beginAsking(scope)
    const [asked, noteTime] = [clock.elapsed(), clock.compare()]
    const [row] =
      version === 0
        ? await server.rows<Row & { written: number | null }>(INSERT, values)
        : await server.rows<Row & { written: number | null }>(UPDATE, [...values, version])
    if (!row) return { version: null, isOnTime: true }
    const isOnTime = noteTime(row.at) && clock.elapsed() - asked <= LATE_MS
    noteHold(row.held)
    // The statement sees the row as it was before it waited for another one.
    if (row.written === null && (row.version ?? 0) > version) found.set(scope, row)
    return { version: row.written, isOnTime }
  }

  async function readRow(scope: string): Promise<Row | undefined> {
    const known = found.get(scope)
    found.delete(scope)
    if (known) return known
    const noteHold = beginAsking(scope)
    const noteTime = clock.compare()
    const [row] = await server.rows<Row>(SELECT, [scope])
    if (row) noteTime(row.at)
    if (row) noteHold(row.held)
    return row
  }

  return {
    sureAt: clock.sureAt,
    read: async (scope) => {
      const row = await readRow(scope)
      return { closedUntil: row?.closed ?? 0, known: row?.known ?? null, version: String(row?.version ?? 0) }
    },
    async compareAndSet(scope, version, next) {
      let written: Written = { version: Number(version), isOnTime: false }
      for (let tries = 0; tries < MOST_TRIES && !written.isOnTime; tries++) {
        written = await write(scope, written.version ?? 0, next())
        if (written.version === null) return null
      }
      return String(written.version)
    },
  }
}

/** A token is held unless one of the organizations that use it is free. */
export const HELD_REASON = `
  SELECT held_reason
  FROM organizations
  WHERE held_fingerprint = $1 AND NOT EXISTS (
    SELECT 1 FROM organizations WHERE last_fingerprint = $1 AND held_since IS NULL AND configured = 1
  )
  LIMIT 1
`

const FOUND = `gate.closed_until AS closed, gate.known, gate.version, (${HELD_REASON}) AS held, ${SERVER_TIME} AS at`

const OF_SCOPE = 'FROM (SELECT) AS one LEFT JOIN sync_gates AS gate ON gate.scope = $1'

const SELECT = `SELECT ${FOUND} ${OF_SCOPE}`

const INSERT = `
  WITH written AS (
    INSERT INTO sync_gates (scope, closed_until, known, waiting_for, waiting_until)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (scope) DO NOTHING
    RETURNING version
  )
  SELECT (SELECT version FROM written) AS written, ${FOUND} ${OF_SCOPE}
`

const UPDATE = `
  WITH written AS (
    UPDATE sync_gates
    SET closed_until = $2, known = $3, waiting_for = $4, waiting_until = $5, version = version + 1
    WHERE scope = $1 AND version = $6
    RETURNING version
  )
  SELECT (SELECT version FROM written) AS written, ${FOUND} ${OF_SCOPE}
`
