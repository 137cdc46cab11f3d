import type { BudgetStore } from '../../sync/types.ts'
import { type BudgetNews, budgetIn, readBudget, writeBudget } from '../core/budgets.ts'
import type { Rule } from '../core/sql.ts'
import {
  commonTokens,
  fingerprintOf,
  heldReasonOfToken,
  hold,
  makeSalt,
  register,
  type Tokens,
} from '../core/tokens.ts'
import { POSTGRES, runRule } from './driver.ts'
import type { ServerClock } from './server/clock.ts'
import type { Server } from './server/server.ts'

/** `newSalt` makes the mirror's salt; of several workers the first one's is used. */
export async function createTokens(
  server: Server,
  clock: ServerClock,
  newSalt: () => string,
): Promise<Tokens> {
  const reading = <T>(rule: Rule<T>) => runRule(server, rule)
  const writing = <T>(begin: () => Rule<T>) => server.transaction((sql) => runRule(sql, begin()))
  const salt = await reading(makeSalt(newSalt))
  /** Why tokens are held, as they were read last. */
  const reasons = new Map<string, string | null>()
  /** Tokens whose permit was taken just now: its answer said whether they are held. */
  const permitted = new Set<string>()

  /** How often this process has written each token's hold. */
  const writes = new Map<string, number>()
  function noteWritten(fingerprint: string, reason: string | null): void {
    writes.set(fingerprint, (writes.get(fingerprint) ?? 0) + 1)
    permitted.delete(fingerprint)
    reasons.set(fingerprint, reason)
  }

  /** An answer that was on its way while this process wrote a hold may not know it, and one that waited for a halted process is late. */
  function beginAsking(fingerprint: string) {
    const before = writes.get(fingerprint)
    const begun = clock.elapsed()
    return (reason: string | null): boolean => {
      const isNews = writes.get(fingerprint) === before
      if (isNews) reasons.set(fingerprint, reason)
      return isNews && clock.elapsed() - begun <= LATE_MS
    }
  }

  async function readReason(fingerprint: string): Promise<void> {
    for (let tries = 0; tries < MOST_LATE; tries++) {
      const note = beginAsking(fingerprint)
      if (note(await reading(heldReasonOfToken(fingerprint)))) return
    }
  }

  const common = commonTokens(POSTGRES, reading, writing)
  return {
    ...common,
    register: (organizations) =>
      server.transaction(async (sql) => {
        // In one order, so that workers that start at once do not wait for each other crosswise.
        await sql.exec('LOCK TABLE organizations, sync_jobs IN SHARE ROW EXCLUSIVE MODE')
        await runRule(sql, register(POSTGRES, organizations))
      }),
    fingerprint: (token) => fingerprintOf(token, salt),
    async useToken(organizationId, fingerprint) {
      await common.useToken(organizationId, fingerprint)
      await readReason(fingerprint)
    },
    holdOf: (fingerprint) => ({
      heldReason: () => reasons.get(fingerprint) ?? null,
      async refresh() {
        if (!permitted.delete(fingerprint)) await readReason(fingerprint)
      },
    }),
    async hold(organizationIds, fingerprint, reason, at) {
      // Tried once, even after the signal: the caller repeats it while the server is away (`untilHoldIsWritten`).
      const held = await server.attempt((sql) =>
        runRule(sql, hold(POSTGRES, organizationIds, fingerprint, reason, at)),
      )
      noteWritten(fingerprint, held)
    },
    budgets: createBudgets(server, clock, (scope) => {
      const note = beginAsking(scope)
      return (reason) => {
        if (note(reason)) permitted.add(scope)
        else permitted.delete(scope)
      }
    }),
  }
}

/** After this time an answer of what holds a token is late, and a permit that was written would count too early. Milliseconds. */
const LATE_MS = 250

/** How often one is asked for and the other written: a server that is always this slow would never be on time. */
const MOST_LATE = 3

/**
 * The budgets of requests, for many workers: the version decides who was first. `beginAsking` is called before each statement, and
 * its result gets why the token that the scope names is held.
 */
export function createBudgets(
  server: Server,
  clock: ServerClock,
  beginAsking: (scope: string) => (held: string | null) => void,
): BudgetStore {
  async function ask<T extends BudgetNews>(scope: string, rule: Rule<T | null>): Promise<T | null> {
    const [noteHold, noteTime] = [beginAsking(scope), clock.compare()]
    const row = await runRule(server, rule)
    if (!row) return null
    noteHold(row.held)
    noteTime(row.at)
    return row
  }

  return {
    async read(scope) {
      return budgetIn(await ask(scope, readBudget(POSTGRES, scope)))
    },
    async compareAndSet(scope, version, next) {
      let known = Number(version)
      for (let tries = 0; tries < MOST_LATE; tries++) {
        const begun = clock.elapsed()
        const written = await ask(scope, writeBudget(POSTGRES, scope, known, next()))
        if (!written) return null
        known = written.version
        if (clock.elapsed() - begun <= LATE_MS) break
      }
      return String(known)
    },
  }
}
