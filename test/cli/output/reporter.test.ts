import type { Logger } from 'pino'
import { describe, expect, it } from 'vitest'
import { createReporter } from '../../../src/cli/output/reporter.ts'
import type { ErrorCode } from '../../../src/errors.ts'
import { jobOf } from '../../helpers/jobs.ts'

const MINUTE = 60_000

/** The levels of the lines about pages of four lists that fail at these minutes. */
function levelsOf(code: ErrorCode, minutes: readonly number[]): string[] {
  const told: string[] = []
  const listen = (level: string) => () => told.push(level)
  const logger = { debug: listen('debug'), warn: listen('warn'), info: listen('info') } as unknown as Logger
  let time = 0
  const reporter = createReporter({
    config: {
      rateLimit: { requestsPerMinute: null, sharePercent: 100, scope: 'token', fallbackWait: 1, maxWait: 1 },
    },
    runtime: { now: () => time, every: () => () => {} },
    logger: { child: () => logger } as unknown as Logger,
    terminal: { isWatched: false, log: process.stderr, draw: () => {}, close: () => {} },
    budgetOf: () => 'x',
  })
  const lists = Array.from({ length: 4 }, () => reporter.observe(jobOf()))
  for (const minute of minutes) {
    time = minute * MINUTE
    for (const observe of lists) observe({ kind: 'retry', code, reason: 'away', delayMs: 1000 })
  }
  return told.filter((level) => level === 'warn')
}

describe('a fault that all lists have at once', () => {
  it.each<[ErrorCode, minutes: number[], warnings: number]>([
    ['NETWORK', [0], 1],
    ['NETWORK', [0, 1, 2, 4], 1],
    ['TIMEOUT', [0, 6, 12], 3],
    ['BAD_RESPONSE', [0], 4],
  ])('%s is told of one list, and again after five minutes: at %j', (code, minutes, warnings) => {
    expect(levelsOf(code, minutes)).toHaveLength(warnings)
  })
})
