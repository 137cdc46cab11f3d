import { onTestFinished } from 'vitest'
import { createStore } from '../../src/store/core/store.ts'
import { register } from '../../src/store/core/tokens.ts'
import type { PostgresAddress } from '../../src/store/postgres/address.ts'
import { makeSchema } from '../../src/store/postgres/migrate.ts'
import { connectServer, runnerOn } from '../../src/store/postgres/server.ts'
import { type Clock, createClock } from './clock.ts'
import { testLeases } from './leases.ts'
import { openReader } from './postgres.ts'
import { shortPatience } from './real-time.ts'
import { KEEP_RUNS_MS, registered } from './test-mirror.ts'

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
  await server.write(() => register(runner.dialect, registered('orders')))
  return { address, clock, server, leases, store, rows: await openReader(address) }
}
