import { onTestFinished } from 'vitest'
import { saltOf } from '../../src/store/core/settings.ts'
import { createStore } from '../../src/store/core/store.ts'
import { createTokens } from '../../src/store/core/tokens.ts'
import type { PostgresAddress } from '../../src/store/postgres/address.ts'
import { serverBudgets } from '../../src/store/postgres/clock.ts'
import { makeSchema } from '../../src/store/postgres/migrate.ts'
import { connectServer, runnerOn } from '../../src/store/postgres/server.ts'
import { type Clock, createClock } from './clock.ts'
import { ACME, GLOBEX } from './jobs.ts'
import { testLeases } from './leases.ts'
import { openReader } from './postgres.ts'
import { shortPatience } from './real-time.ts'
import { KEEP_RUNS_MS } from './test-mirror.ts'

export type PostgresMirror = Awaited<ReturnType<typeof openPostgresMirror>>

/** One worker on a schema, with acme and globex registered for `orders`. `rows`: what another connection reads, what is committed. */
export async function openPostgresMirror(address: PostgresAddress, clock: Clock = createClock()) {
  const server = await connectServer(address, shortPatience())
  await server.write(() => makeSchema(server))
  const runner = runnerOn(server, { now: clock.now, signal: new AbortController().signal })
  const leases = testLeases(runner)
  onTestFinished(async () => {
    await leases.close()
    await server.close()
  })
  const store = createStore({ runner, leases, baseUrl: 'https://admin.example.com', keepRuns: KEEP_RUNS_MS })
  const salt = await server.write(() => saltOf(() => 'a salt'))
  const tokens = createTokens({ runner, salt, budgets: serverBudgets(server) })
  await tokens.register([ACME, GLOBEX].map((organization) => ({ ...organization, collections: ['orders'] })))
  return { address, clock, server, leases, store, rows: await openReader(address) }
}
