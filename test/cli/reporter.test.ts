import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { createLogger } from '../../src/cli/log.ts'
import { createReporter } from '../../src/cli/reporter.ts'
import { createTerminal } from '../../src/cli/terminal.ts'

const RATE_LIMIT = {
  requestsPerMinute: null,
  sharePercent: 100,
  scope: 'token',
  fallbackWait: 60_000,
  maxWait: 900_000,
} as const

describe('what draws the progress of jobs', () => {
  it.each([
    ['wakes up for a terminal, until it is closed', true, 1],
    ['lets a process sleep that writes to no terminal', false, 0],
  ])('%s', async (_, isTTY, wakers) => {
    const output = Object.assign(new PassThrough(), { isTTY })
    const logger = await createLogger({ level: 'silent', destination: output, pretty: false, color: false })
    let awake = 0
    const every = () => {
      awake++
      return () => awake--
    }

    const reporter = createReporter({
      config: { rateLimit: RATE_LIMIT },
      runtime: { now: () => 0, every },
      logger,
      terminal: createTerminal(output),
    })

    expect(awake).toBe(wakers)
    reporter.close()
    expect(awake).toBe(0)
  })
})
