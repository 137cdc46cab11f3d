import { describe, expect, it } from 'vitest'
import { differenceLines, isApart } from '../../../src/cli/commands/verify.ts'
import { JobError } from '../../../src/errors.ts'
import type { Difference, Differences } from '../../../src/sync/differences.ts'
import { jobOf } from '../../helpers/jobs.ts'

const NONE: Differences = {
  items: 4000,
  counts: { missing: 0, extra: 0, different: 0 },
  isCut: false,
  listed: [],
  moved: 0,
  coverage: 'steady',
  isExtraKnown: true,
  isNeverSynced: false,
}

function difference(kind: Difference['kind'], changed: Partial<Difference> = {}): Difference {
  return { kind, key: '7', page: 1, paths: [], hasMorePaths: false, reject: null, ...changed }
}

function linesOf(changed: Partial<Differences>): string[] {
  return differenceLines({ job: jobOf(), differences: { ...NONE, ...changed }, error: null })
}

describe('what verify prints', () => {
  it.each<[string, Partial<Differences>, string[]]>([
    ['of no difference', {}, ['acme orders: no difference (4,000 items, steady)']],
    [
      'of some, one a line',
      {
        counts: { missing: 1, extra: 1, different: 1 },
        listed: [
          difference('missing'),
          difference('extra', { page: null }),
          difference('different', { paths: ['state', 'customer.first name'], hasMorePaths: true }),
        ],
      },
      [
        'missing acme orders 7',
        'extra acme orders 7',
        'different acme orders 7 state "customer.first name" ...',
        'acme orders: 1 missing, 1 extra, 1 different (4,000 items, steady)',
      ],
    ],
    [
      'of more than it lists',
      { counts: { missing: 1201, extra: 0, different: 0 }, listed: [difference('missing')] },
      [
        'missing acme orders 7',
        'missing acme orders ... and 1,200 more',
        'acme orders: 1,201 missing (4,000 items, steady)',
      ],
    ],
    [
      'of items without a key, and of keys that are no plain word',
      {
        counts: { missing: 2, extra: 0, different: 0 },
        listed: [
          difference('missing', { key: null, page: 3, reject: 'key "id" is null' }),
          difference('missing', { key: 'a b\u001b[2J' }),
        ],
      },
      [
        'missing acme orders (on page 3, without a usable key: key "id" is null)',
        'missing acme orders "a b\\u001b[2J"',
        'acme orders: 2 missing (4,000 items, steady)',
      ],
    ],
    [
      'of a reading that cannot tell all',
      { moved: 2, coverage: 'drifted', isExtraKnown: false },
      [
        'acme orders: no difference (4,000 items, drifted); 2 moved meanwhile, which is no difference; ' +
          'this reading cannot say whether the mirror has more than the list',
      ],
    ],
    [
      'of more items than are looked at twice',
      { isCut: true, counts: { missing: 50_000, extra: 0, different: 0 } },
      [
        'acme orders: at least 50,000 missing (4,000 items, steady); more items seemed to differ than can be checked again',
      ],
    ],
    [
      'of a list that was never synced',
      { isNeverSynced: true, coverage: null, counts: { missing: 4000, extra: 0, different: 0 } },
      ['acme orders: never synced: all 4,000 items are missing'],
    ],
    [
      'of an empty one that was never synced',
      { isNeverSynced: true, coverage: null, items: 0 },
      ['acme orders: never synced; the list is empty, too'],
    ],
  ])('%s', (_, changed, expected) => {
    expect(linesOf(changed)).toEqual(expected)
  })

  it('is the error, if nothing could be compared', () => {
    const error = new JobError('BUSY', 'somebody else')

    const lines = differenceLines({ job: jobOf(), differences: null, error })

    expect(lines).toEqual(['acme orders: not verified: BUSY: somebody else'])
  })
})

describe('isApart', () => {
  it.each([
    [{ missing: 0, extra: 0, different: 0 }, false],
    [{ missing: 1, extra: 0, different: 0 }, true],
    [{ missing: 0, extra: 1, different: 0 }, true],
    [{ missing: 0, extra: 0, different: 1 }, true],
  ])('is of %j %s', (counts, expected) => {
    expect(isApart({ ...NONE, counts })).toBe(expected)
  })
})
