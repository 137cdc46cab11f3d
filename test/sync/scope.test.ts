import { describe, expect, it } from 'vitest'
import type { JobOptions } from '../../src/sync/job.ts'
import { jobOf } from '../helpers/jobs.ts'
import { BACKFILL, createScene, expectRows, history, without } from '../helpers/removal-scene.ts'
import { upTo } from '../helpers/scripted-list.ts'

const ALL = upTo(30)
/** Two that the narrower list lacks, and one that left every list. */
const PAID = without(ALL, 4, 5)

const F = { job: jobOf({ filters: {} }) }
const PAID_ALONE = { job: jobOf({ filters: { state: 'paid', by: 'id' } }) }

type Step = [ids: readonly number[], options: Partial<JobOptions>]

async function lived(steps: readonly Step[]) {
  const scene = createScene()
  for (const [ids, options] of steps) await scene.walk(ids, options)
  return scene
}

/** One item twice and another one missing, so that a walk drifts. */
const drifting = (ids: readonly number[]) => ids.toSpliced(20, 1, ids[0] ?? 0)

describe('a row that left the list with a change of filters', () => {
  it.each<[string, Partial<JobOptions>]>([
    ['other filters', PAID_ALONE],
    ['another path', { job: jobOf({ path: '/api/v2/orders' }) }],
  ])('leaves as out of scope by the same rules: %s', async (_what, other) => {
    const scene = await lived([
      [ALL, F],
      [PAID, other],
    ])
    expectRows(scene, ALL)

    await scene.walk(PAID, other)

    expectRows(scene, PAID)
    expect(history(scene.test)).toEqual([
      [4, 'out_of_scope'],
      [5, 'out_of_scope'],
    ])
  })

  it.each<[string, Step[], [number, string][]]>([
    [
      'a row that leaves later was removed',
      [
        [ALL, F],
        [PAID, PAID_ALONE],
        [PAID, PAID_ALONE],
        [without(PAID, 9), PAID_ALONE],
        [without(PAID, 9), PAID_ALONE],
      ],
      [
        [4, 'out_of_scope'],
        [5, 'out_of_scope'],
        [9, 'removed'],
      ],
    ],
    [
      'rows that the other list lacks, after an untrusted walk of it',
      [
        [ALL, F],
        [drifting(PAID), PAID_ALONE],
        [PAID, PAID_ALONE],
        [PAID, PAID_ALONE],
      ],
      [
        [4, 'out_of_scope'],
        [5, 'out_of_scope'],
      ],
    ],
    [
      'rows of the very first walk, which was not trusted',
      [
        [drifting(ALL), F],
        [without(ALL, 9), F],
        [without(ALL, 9), F],
      ],
      [[9, 'removed']],
    ],
    [
      'the same filters in another order are no change',
      [
        [PAID, PAID_ALONE],
        [without(PAID, 9), { job: jobOf({ filters: { by: 'id', state: 'paid' } }) }],
        [without(PAID, 9), PAID_ALONE],
      ],
      [[9, 'removed']],
    ],
    [
      'rows missed once by the first list, and by the second one',
      [
        [ALL, F],
        [without(ALL, 9), F],
        [without(PAID, 9), PAID_ALONE],
        [without(PAID, 9), PAID_ALONE],
      ],
      [
        [4, 'out_of_scope'],
        [5, 'out_of_scope'],
        [9, 'out_of_scope'],
      ],
    ],
    [
      'rows of an untrusted walk of the other list, when the first one is back',
      [
        [PAID, PAID_ALONE],
        [drifting(ALL), F],
        [PAID, PAID_ALONE],
        [PAID, PAID_ALONE],
      ],
      [
        [4, 'out_of_scope'],
        [5, 'out_of_scope'],
      ],
    ],
    [
      'rows of a partial backfill of the configured list were removed',
      [
        [PAID, PAID_ALONE],
        [
          ALL,
          {
            plan: { ...BACKFILL, kind: 'partial' },
            job: jobOf({
              filters: { state: 'paid', by: 'id', month: '11' },
              scope: { by: 'id', state: 'paid' },
            }),
          },
        ],
        [PAID, PAID_ALONE],
        [PAID, PAID_ALONE],
      ],
      [
        [4, 'removed'],
        [5, 'removed'],
      ],
    ],
    [
      'rows of the very first walk, before it was complete',
      [
        [drifting(ALL), F],
        [PAID, PAID_ALONE],
        [PAID, PAID_ALONE],
      ],
      [
        [4, 'out_of_scope'],
        [5, 'out_of_scope'],
      ],
    ],
  ])('is distinguished from a removed one: %s', async (_what, steps, expected) => {
    const { test } = await lived(steps)

    expect(history(test)).toEqual(expected)
  })
})
