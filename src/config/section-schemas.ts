import { z } from 'zod'
import {
  baseUrl,
  choice,
  duration,
  linkHost,
  list,
  listenHost,
  percent,
  positiveNumber,
  timerDuration,
  wholeNumber,
} from './fields.ts'

/** Also needed where a delay that the file gives is compared with one that it leaves out. */
export const RETRY_DELAYS = { minDelay: '1s', maxDelay: '60s' }

/** For every mapping that is none. */
export const MAPPING = {
  error: 'must be a mapping. Write each setting on a line like "key: value", indented.',
}

export const api = z.strictObject(
  {
    baseUrl: baseUrl().describe(
      'Address of the API, a path prefix included; no user name, query or fragment',
    ),
    timeout: timerDuration().prefault('30s').describe('For one request, its body included'),
    maxResponseBytes: wholeNumber(1024)
      .default(33_554_432)
      .describe('Largest answer that is read, decompressed'),
    linkHosts: list(linkHost(), 'host names')
      .nullable()
      .transform((given) => given ?? [])
      .prefault([])
      .describe('Other host names that links.next may carry'),
  },
  MAPPING,
)

export const rateLimit = z.strictObject(
  {
    // One in 16 hours 40 minutes.
    requestsPerMinute: positiveNumber(0.001)
      .nullable()
      .default(null)
      .describe(
        'A ceiling of our own: no 60 seconds hold more requests; 0.5 is one in two minutes. Default: none',
      ),
    sharePercent: percent(1)
      .default(100)
      .describe('How much of the budget that the server announces is ours'),
    scope: choice(['token', 'organization', 'all']).default('token').describe('Who shares one budget'),
    fallbackWait: timerDuration().prefault('60s').describe('After a 429 that does not say when to come back'),
    maxWait: duration()
      .prefault('15m')
      .describe('Told to wait longer than this: stop and keep the checkpoint'),
  },
  MAPPING,
)

export const retry = z.strictObject(
  {
    attempts: wholeNumber(1).default(10).describe('Tries of one page for faults that pass by themselves'),
    minDelay: timerDuration().prefault(RETRY_DELAYS.minDelay).describe('Before the second try of a page'),
    maxDelay: timerDuration().prefault(RETRY_DELAYS.maxDelay).describe('Between two tries at most'),
  },
  MAPPING,
)

export const removals = z.strictObject(
  {
    brakePercent: percent(0).default(20).describe("Percent of the job's live rows that one walk may remove"),
    brakeRows: wholeNumber(0).default(10).describe('Rows that one walk may remove whatever the percentage'),
  },
  MAPPING,
)

export const http = z.strictObject(
  {
    host: listenHost()
      .default('127.0.0.1')
      .describe('Address to listen on; 0.0.0.0 for all, as in a container'),
    port: wholeNumber(0, 65_535).default(9464).describe('Port to listen on; 0 for any that is free'),
  },
  MAPPING,
)
