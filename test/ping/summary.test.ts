import { expect, it } from 'vitest'
import { JobError } from '../../src/errors.ts'
import { endOf, outcomeText, reasonOf } from '../../src/ping/summary.ts'
import type { JobResult } from '../../src/sync/job.ts'
import { RAN, resultOf } from './results.ts'

const READ: Partial<JobResult> = { run: RAN, walk: { id: 1, resumed: false } as JobResult['walk'], items: 25 }
const BUSY = { error: new JobError('BUSY', 'process 7 is working on it') }

it.each<[string, Partial<JobResult>[], number | null, string]>([
  [
    'read lists, and how long it took',
    [READ, { ...READ, run: RAN && { ...RAN, rowsAdded: 2, rowsChanged: 1, rowsRemoved: 1000 } }],
    61_000,
    'admin-mirror: 2 lists in 61 seconds; 50 rows seen, 2 new, 1 changed, 1,000 removed\n',
  ],
  ['read nothing', [{}], null, 'admin-mirror: 1 list; 0 new, 0 changed, 0 removed\n'],
  [
    'left a list to another process',
    [READ, BUSY],
    null,
    'admin-mirror: 2 lists; 25 rows seen, 0 new, 0 changed, 0 removed\n1 list left to another process\n',
  ],
])('the text of an outcome says of a run that it %s', (_what, results, ms, text) => {
  const ended = results.map((changed) => resultOf('acme', changed))

  expect(outcomeText(ended, new Map(), ms)).toBe(text)
})

it.each<[JobResult['trigger'], string]>([
  ['schedule', 'busy'],
  ['refresh', 'busy'],
  ['manual', 'failed'],
  ['backfill', 'failed'],
])('a list that another process works on is, for a %s, %s', (trigger, end) => {
  expect(endOf(resultOf('acme', { ...BUSY, trigger }))).toBe(end)
})

it.each([
  [20, /20 lists failed:\n(.*\n){20}$/],
  [22, /22 lists failed:\n(.*\n){20}and 2 more\n$/],
])('the text of an outcome names at most twenty lists that failed, of %i', (count, text) => {
  const lists = Array.from({ length: count }, (_, index) => `org-${index} orders`)
  const failed = new Map(lists.map((list) => [list, 'NETWORK']))

  expect(outcomeText([], failed, null)).toMatch(text)
})

it.each([
  ['an unknown code', 'LATER\nPOST /x', null],
  ['a long code', 'x'.repeat(100_000), null],
  ['a long message', 'DATABASE', 'a line\n'.repeat(10_000)],
])('%s in the mirror takes one short line of a ping', (_what, code, message) => {
  const reason = reasonOf(code, message)

  expect(reason).not.toContain('\n')
  // 300 characters, each of which may be written as its number.
  expect(reason.length).toBeLessThan(3000)
})
