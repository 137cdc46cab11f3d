import { type Connection, guarded } from './database.ts'
import type { Transact } from './transaction.ts'

/** The budget of a rate limit, as those who pass it keep it. */
export interface KeptGate {
  /** Epoch milliseconds; 0 when it was never closed. */
  closedUntil: number
  known: string | null
  waitingFor: string | null
  /** Epoch milliseconds; 0 when nobody waits. */
  waitingUntil: number
}

/** `sync_gates`: the budgets of rate limits, each by its scope. */
export interface GateStore {
  read(scope: string): KeptGate
  /** Reads and writes a gate in one transaction; `change` is synchronous. */
  change<T>(scope: string, change: (kept: KeptGate) => { keep: KeptGate; result: T }): Promise<T>
  /** Opens the gates that an organization may wait at, inside the caller's transaction. */
  forgetWaits(organizationId: string): void
}

export function createGateStore(connection: Connection, write: Transact): GateStore {
  const findGate = connection.prepare(
    'SELECT closed_until, known, waiting_for, waiting_until FROM sync_gates WHERE scope = ?',
  )
  const saveGate = connection.prepare(`
    INSERT OR REPLACE INTO sync_gates (scope, closed_until, known, waiting_for, waiting_until)
    VALUES (?, ?, ?, ?, ?)
  `)
  // What was sent in the last minute still counts.
  const openGates = connection.prepare(`
    UPDATE sync_gates
    SET closed_until = '${NEVER}'
    WHERE scope IN ('all', ?) OR scope = (SELECT last_fingerprint FROM organizations WHERE id = ?)
  `)
  const gateOf = (scope: string) => keptGate(findGate.get(scope) as GateRow | undefined)

  return {
    read: (scope) => guarded(connection.name, () => gateOf(scope)),
    change: (scope, change) =>
      write(() => {
        const kept = gateOf(scope)
        const { keep, result } = change(kept)
        if (!isSameGate(keep, kept)) saveGate.run(scope, ...gateValues(keep))
        return result
      }),
    forgetWaits: (organizationId) => {
      openGates.run(organizationId, organizationId)
    },
  }
}

interface GateRow {
  closed_until: string
  known: string | null
  waiting_for: string | null
  waiting_until: string | null
}

const NEVER = new Date(0).toISOString()

function keptGate(row: GateRow | undefined): KeptGate {
  return {
    closedUntil: row ? Date.parse(row.closed_until) : 0,
    known: row?.known ?? null,
    waitingFor: row?.waiting_for ?? null,
    waitingUntil: row?.waiting_until ? Date.parse(row.waiting_until) : 0,
  }
}

function gateValues({ closedUntil, known, waitingFor, waitingUntil }: KeptGate) {
  const until = waitingUntil === 0 ? null : new Date(waitingUntil).toISOString()
  return [new Date(closedUntil).toISOString(), known, waitingFor, until]
}

function isSameGate(one: KeptGate, other: KeptGate): boolean {
  return String(gateValues(one)) === String(gateValues(other))
}
