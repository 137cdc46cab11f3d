import { describe, expect, it, onTestFinished } from 'vitest'
import type { Notes } from '../../../src/cli/mirror.ts'
import { openPostgres } from '../../../src/cli/postgres/connect.ts'
import type { Runtime } from '../../../src/cli/runtime.ts'
import type { Config } from '../../../src/config/config.ts'
import { newSchema, openDatabase } from '../../helpers/postgres.ts'
import { afterRealTime } from '../../helpers/real-time.ts'

const server = await openDatabase()

describe.skipIf(server.missing !== null)('after the clock of the server was set forward', () => {
  it.each([
    [null, 62_000],
    [30, 62_000],
    [0.1, 602_000],
  ])('requests wait at a ceiling of %s a minute for %i ms', async (requestsPerMinute, ms) => {
    const { password, ...address } = newSchema(server)
    const postgres = { ...address, authority: null, shown: '', password: () => password() ?? null, tls: null }
    const config = { postgres, collections: [], rateLimit: { requestsPerMinute } } as unknown as Config
    const runtime = {
      env: {},
      elapsed: () => performance.now(),
      after: afterRealTime,
      every: () => () => {},
      sleep: async () => {},
      signal: new AbortController().signal,
    } as unknown as Runtime
    const waits: unknown[] = []
    const warn: Notes['warn'] = ({ wait_ms: wait }) => waits.push(wait)
    const { clock, close } = await openPostgres(config, runtime, { info: () => {}, warn })
    onTestFinished(close)
    clock.compare()(clock.now() + 3_600_000)

    expect(waits).toEqual([ms])
  })
})
