import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { createLogger } from '../../../src/cli/output/log.ts'
import { createReporter } from '../../../src/cli/output/reporter.ts'
import { createTerminal } from '../../../src/cli/output/terminal.ts'

const RATE_LIMIT = {
  requestsPerMinute: null,
  sharePercent: 100,
  scope: 'token',
  fallbackWait: 60_000,
  maxWait: 900_000,
} as const

describe('the progress of jobs', () => {
  it.each([
    ['is drawn by a timer on a terminal, until it is closed', true, 1],
    ['needs no timer without a terminal', false, 0],
  ])('%s', async (_, isTTY, timers) => {
    const output = Object.assign(new PassThrough(), { isTTY })
    const logger = await createLogger({ level: 'silent', destination: output, pretty: false, color: false })
    let running = 0
    const every = () => {
      running++
      return () => running--
    }

    const reporter = createReporter({
      config: { rateLimit: RATE_LIMIT },
      runtime: { now: () => 0, every },
      logger,
      terminal: createTerminal(output, 'xterm'),
      budgetOf: () => 'all',
    })

    expect(running).toBe(timers)
    reporter.close()
    expect(running).toBe(0)
  })
})
