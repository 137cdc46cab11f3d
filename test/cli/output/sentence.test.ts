import { describe, expect, it } from 'vitest'
import { sentence } from '../../../src/cli/output/log.ts'

const RUN = {
  msg: 'run finished',
  organization: 'acme',
  collection: 'orders',
  status: 'succeeded',
  pages: 4000,
  items: 100_000,
  rows_seen: 100_025,
  rows_added: 12,
  rows_changed: 3,
  rate_limit_wait_ms: 0,
  coverage: 'steady',
}

describe('a line of the log on a terminal', () => {
  it.each([
    ['names its job', { msg: 'waiting', organization: 'acme', collection: 'orders' }, 'acme orders waiting'],
    [
      'names its job once',
      { msg: 'acme orders page 1: no answer; trying again', organization: 'acme', collection: 'orders' },
      'acme orders page 1: no answer; trying again',
    ],
    ['is only the message without a job', { msg: 'started', jobs: 4 }, 'started'],
    [
      'says what a run did',
      RUN,
      'acme orders run finished, succeeded, 4,000 pages, 100,000 rows (12 new, 3 changed), steady',
    ],
    [
      'says of a refresh, which may read a page twice, what it changed alone',
      { ...RUN, event: 'refresh_finished', msg: 'refresh finished', status: undefined, items: undefined },
      'acme orders refresh finished, 4,000 pages, 12 new, 3 changed, steady',
    ],
    [
      'says what it waited for',
      { ...RUN, coverage: null, rate_limit_wait_ms: 120_000 },
      'acme orders run finished, succeeded, 4,000 pages, 100,000 rows (12 new, 3 changed), 2 minutes at the rate limit',
    ],
    [
      'says why a run failed',
      {
        ...RUN,
        pages: 1,
        items: 1,
        msg: 'run failed: NETWORK: it failed',
        status: 'failed',
        coverage: null,
        error_code: 'NETWORK',
        error_message: 'it failed',
      },
      'acme orders run failed: NETWORK: it failed, 1 page, 1 row (12 new, 3 changed)',
    ],
    [
      'says why a run did not begin',
      {
        msg: 'run not begun: BUSY: it is busy',
        organization: 'acme',
        collection: 'orders',
        error_code: 'BUSY',
        error_message: 'it is busy',
      },
      'acme orders run not begun: BUSY: it is busy',
    ],
    [
      'says why, where the message does not',
      { msg: 'no refresh can be begun', error_code: 'DATABASE', error_message: 'the disk is full' },
      'no refresh can be begun, DATABASE: the disk is full',
    ],
  ])('%s', (_title, line, expected) => {
    expect(sentence(line, 'msg')).toBe(expected)
  })
})
