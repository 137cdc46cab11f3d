import { describe, expect, it } from 'vitest'
import { MirrorError } from '../../../src/errors.ts'
import { connectServer } from '../../../src/store/postgres/server/server.ts'
import { newSchema, openDatabase } from '../../helpers/postgres.ts'
import { afterRealTime } from '../../helpers/real-time.ts'

const server = await openDatabase()

describe.skipIf(server.missing !== null)('a statement that the server ends each time', () => {
  it('is tried again with growing waits, said, and given up after about a minute', async () => {
    const waits: number[] = []
    const reports: string[] = []
    const connected = await connectServer(newSchema(server), {
      now: () => 0,
      sleep: async (ms) => {
        waits.push(ms)
        await Promise.resolve()
      },
      after: afterRealTime,
      signal: new AbortController().signal,
      report: (message) => reports.push(message),
    })
    const slow = connected.transaction(async (sql) => {
      await sql.exec('SET LOCAL statement_timeout = 1')
      await sql.rows('SELECT pg_sleep(60)')
    })

    await expect(slow).rejects.toThrow(MirrorError)
    await expect(slow).rejects.toThrow(/ended a statement by its statement_timeout: raise it/)
    expect(waits.slice(0, 3)).toEqual([250, 500, 1000])
    expect(waits.reduce((sum, ms) => sum + ms, 0)).toBeGreaterThan(40_000)
    expect(waits.reduce((sum, ms) => sum + ms, 0)).toBeLessThan(80_000)
    expect(reports).toEqual([expect.stringMatching(/^waiting for the mirror: .*statement_timeout/)])
    // The connection is there for the next one.
    expect(await connected.rows('SELECT 1 AS one')).toEqual([{ one: 1 }])
    await connected.close()
  })
})
