import { describe, expect, it } from 'vitest'
import { exitCodeOfJobs } from '../../src/cli/exit-code.ts'
import { type ErrorCode, JobError, type KnownError } from '../../src/errors.ts'
import type { JobResult } from '../../src/sync/job.ts'
import { jobOf } from '../helpers/jobs.ts'

function result(code: ErrorCode | null): JobResult {
  const error: KnownError | null = code === null ? null : new JobError(code, 'it failed')
  return {
    job: jobOf(),
    trigger: 'manual',
    walk: null,
    run: null,
    isInstead: false,
    items: 0,
    coverage: null,
    error,
    heldBack: null,
    untrusted: null,
  }
}

const EXIT_CODES: Record<ErrorCode, number> = {
  UNAUTHORIZED: 3,
  FORBIDDEN: 3,
  ORGANIZATION_NOT_FOUND: 3,
  BAD_REQUEST: 3,
  RATE_LIMITED: 1,
  SERVER_ERROR: 1,
  NETWORK: 1,
  TIMEOUT: 1,
  BAD_RESPONSE: 1,
  LINK_REFUSED: 1,
  INCOMPLETE: 5,
  CONFIGURATION: 1,
  REMOVALS_HELD: 5,
  UNEXPECTED_STATUS: 1,
  DATABASE: 4,
  INTERNAL: 1,
  BUSY: 1,
  INTERRUPTED: 1,
}

describe('exitCodeOfJobs', () => {
  const running = new AbortController().signal

  it.each(Object.entries(EXIT_CODES))('of one that ended with %s is %i', (code, exitCode) => {
    expect(exitCodeOfJobs([result(code as ErrorCode)], running)).toBe(exitCode)
  })

  it.each<[(ErrorCode | null)[], number]>([
    [[], 0],
    [[null, null], 0],
    [[null, 'NETWORK'], 1],
    [['NETWORK', 'INCOMPLETE'], 5],
    [['INCOMPLETE', 'FORBIDDEN', 'BUSY'], 3],
    [['UNAUTHORIZED', 'DATABASE', 'INCOMPLETE'], 4],
  ])('of jobs that ended with %j is %i', (codes, exitCode) => {
    expect(exitCodeOfJobs(codes.map(result), running)).toBe(exitCode)
  })

  it.each([
    ['SIGHUP', 129],
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ])('puts %s before all errors', (signal, exitCode) => {
    expect(exitCodeOfJobs([result('DATABASE')], AbortSignal.abort(signal))).toBe(exitCode)
  })
})
