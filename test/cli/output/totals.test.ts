import { describe, expect, it } from 'vitest'
import { addList, newTotals, totalsText } from '../../../src/cli/output/run-lines.ts'
import { InterruptedError, JobError } from '../../../src/errors.ts'

const RUN = { rowsAdded: 10, rowsChanged: 2, rowsRemoved: 1 }

describe('the sums of a command', () => {
  it.each([
    [
      'all ended well',
      [null, null],
      RUN,
      '2 lists in 13 minutes: all ended well; 20 rows new, 4 changed, 2 removed; 10 requests',
    ],
    [
      'one failed, one was stopped',
      [null, new JobError('INCOMPLETE', 'short'), new InterruptedError('stopped')],
      RUN,
      '3 lists in 13 minutes: 1 ended well, 1 failed, 1 stopped; 30 rows new, 6 changed, 3 removed; 15 requests',
    ],
    [
      'one is read by another process',
      [null, new JobError('BUSY', 'elsewhere')],
      null,
      '2 lists in 13 minutes: 1 ended well, 1 left to another process; 10 requests',
    ],
    ['nothing was written', [null, null], null, '2 lists in 13 minutes: all ended well; 10 requests'],
  ])('say that %s', (_, errors, run, expected) => {
    const totals = newTotals()
    for (const error of errors) addList(totals, error, 5, run)

    expect(totalsText(totals, 780_000)).toBe(expected)
  })
})
