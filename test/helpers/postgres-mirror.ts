import { onTestFinished } from 'vitest'
import type { Leases } from '../../src/store/core/leases.ts'
import type { Rule } from '../../src/store/core/sql.ts'
import { createStore } from '../../src/store/core/store.ts'
import { createTokens, makeSalt, type Tokens } from '../../src/store/core/tokens.ts'
import type { PostgresAddress } from '../../src/store/postgres/address.ts'
import { serverBudgets } from '../../src/store/postgres/clock.ts'
import { migrate } from '../../src/store/postgres/migrate.ts'
import { connectServer, runnerOn, type Server } from '../../src/store/postgres/server.ts'
import type { Store } from '../../src/sync/store.ts'
import { type Clock, createClock } from './clock.ts'
import { ACME, GLOBEX } from './jobs.ts'
import { testLeases } from './leases.ts'
import { openReader } from './postgres.ts'
import { shortPatience } from './real-time.ts'
import { KEEP_RUNS_MS, type Row } from './test-mirror.ts'

/** One worker on a schema, with acme and globex registered for `orders`. */
export interface PostgresMirror {
  address: PostgresAddress
  clock: Clock
  server: Server
  leases: Leases & { name: string }
  store: Store
  tokens: Tokens
  /** What another connection reads: what is committed. */
  rows(sql: string, ...values: unknown[]): Promise<Row[]>
  stop(): void
  close(): Promise<void>
}

export async function openPostgresMirror(
  address: PostgresAddress,
  clock: Clock = createClock(),
): Promise<PostgresMirror> {
  const { now } = clock
  const stop = new AbortController()
  const { signal } = stop
  const server = await connectServer(address, shortPatience(signal))
  await migrate(server)
  const rows = await openReader(address)
  const runner = runnerOn(server, { now, signal })
  const leases = testLeases(runner)
  let isClosed = false
  const close = async () => {
    if (isClosed) return
    isClosed = true
    await leases.close()
    await server.close()
  }
  onTestFinished(close)
  const store = createStore({ runner, leases, baseUrl: 'https://admin.example.com', keepRuns: KEEP_RUNS_MS })
  const salt = await server.write(() => makeSalt(() => 'a salt'))
  const holding = <T>(begin: () => Rule<T>) => server.once(begin())
  const tokens = createTokens({ runner, salt, budgets: serverBudgets(server), holding })
  await tokens.register([ACME, GLOBEX].map((organization) => ({ ...organization, collections: ['orders'] })))
  return { address, clock, server, leases, store, tokens, rows, stop: () => stop.abort(), close }
}
