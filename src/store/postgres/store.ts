import type { Store } from '../../sync/store.ts'
import type { BudgetStore } from '../../sync/types.ts'
import { acquiring } from '../core/acquire.ts'
import { type BudgetNews, budgetIn, readBudget, writeBudget } from '../core/budgets.ts'
import type { Leases } from '../core/leases.ts'
import { claimAddress, isOfAddress } from '../core/settings.ts'
import { exec, type Rule } from '../core/sql.ts'
import { createStore } from '../core/store.ts'
import {
  commonTokens,
  fingerprintOf,
  heldReasonOfToken,
  hold,
  makeSalt,
  register,
  type Tokens,
} from '../core/tokens.ts'
import { placeOf } from './connection.ts'
import { POSTGRES } from './driver.ts'
import { OtherTablesError } from './errors.ts'
import { runnerOn, type Server } from './server.ts'

export interface PostgresStoreOptions {
  server: Server
  leases: Leases
  /** `api.baseUrl`: no job can be acquired while the mirror holds the lists of another address. */
  baseUrl: string
  /** How long rows of `sync_runs` and closed walks are kept, in milliseconds. */
  keepRuns: number
  now: () => number
  signal: AbortSignal
}

/** The store on a PostgreSQL schema, for any number of workers. */
export function openPostgresStore({
  server,
  leases,
  baseUrl,
  keepRuns,
  ...when
}: PostgresStoreOptions): Store {
  const runner = runnerOn(server, when)
  return {
    ...createStore({ runner, keepRuns, isOfOtherTables: (error) => error instanceof OtherTablesError }),
    ...acquiring(runner, leases, baseUrl),
  }
}

/** Notes the API whose lists the schema holds, as `claimAddress` of the core. */
export async function claimAddressOn(server: Server, baseUrl: string, accept: boolean): Promise<void> {
  if (await server.read(isOfAddress(baseUrl))) return
  await server.write(function* () {
    // One process after another: several at once could each find no address.
    yield* exec(['LOCK TABLE sync_settings IN SHARE ROW EXCLUSIVE MODE'])
    yield* claimAddress(baseUrl, accept, placeOf(server.address))
  })
}

/** `newSalt` makes the mirror's salt; of several workers the first one's is used. */
export async function createTokens(server: Server, newSalt: () => string): Promise<Tokens> {
  const salt = await server.read(makeSalt(newSalt))
  /** Why tokens are held, as they were read last. */
  const reasons = new Map<string, string | null>()
  /** How often this process has written each token's hold. */
  const writes = new Map<string, number>()

  async function readReason(fingerprint: string): Promise<void> {
    const before = writes.get(fingerprint)
    const reason = await server.read(heldReasonOfToken(fingerprint))
    // An answer that was on its way while this process wrote a hold may not know it.
    if (writes.get(fingerprint) === before) reasons.set(fingerprint, reason)
  }

  const common = commonTokens(POSTGRES, server.read, server.write)
  return {
    ...common,
    register: (organizations) =>
      server.write(function* () {
        // In one order, so that workers that start at once do not wait for each other crosswise.
        yield* exec(['LOCK TABLE organizations, sync_jobs IN SHARE ROW EXCLUSIVE MODE'])
        yield* register(POSTGRES, organizations)
      }),
    fingerprint: (token) => fingerprintOf(token, salt),
    async useToken(organizationId, fingerprint) {
      await common.useToken(organizationId, fingerprint)
      await readReason(fingerprint)
    },
    holdOf: (fingerprint) => ({
      heldReason: () => reasons.get(fingerprint) ?? null,
      refresh: () => readReason(fingerprint),
    }),
    async hold(organizationIds, fingerprint, reason, at) {
      // Tried once, even after the signal: the caller repeats it while the server is away (`untilHoldIsWritten`).
      await server.once(hold(POSTGRES, organizationIds, fingerprint, reason, at))
      writes.set(fingerprint, (writes.get(fingerprint) ?? 0) + 1)
      reasons.set(fingerprint, reason)
    },
    budgets: createBudgets(server),
  }
}

/** A permit whose writing took longer would count too early. Milliseconds. */
const LATE_MS = 250

/** How often one is written again: a server that is always this slow would never be on time. */
const MOST_LATE = 3

/** The budgets of requests, for many workers: the version decides who was first. */
export function createBudgets({ read, clock }: Pick<Server, 'read' | 'clock'>): BudgetStore {
  async function ask<T extends BudgetNews>(rule: Rule<T | null>): Promise<T | null> {
    const noteTime = clock.compare()
    const row = await read(rule)
    if (row) noteTime(row.at)
    return row
  }

  return {
    async read(scope) {
      return budgetIn(await ask(readBudget(POSTGRES, scope)))
    },
    async compareAndSet(scope, version, next) {
      let known = Number(version)
      for (let tries = 0; tries < MOST_LATE; tries++) {
        const begun = clock.elapsed()
        const written = await ask(writeBudget(POSTGRES, scope, known, next()))
        if (!written) return null
        known = written.version
        if (clock.elapsed() - begun <= LATE_MS) break
      }
      return String(known)
    },
  }
}
