import { describe, expect, it } from 'vitest'
import type { JobOptions } from '../../src/sync/job.ts'
import { jobOf } from '../helpers/jobs.ts'
import { BACKFILL, createScene, expectRows, held, history, without } from '../helpers/removal-scene.ts'
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

/** Walks of the whole list, and of the narrower one; without row 9, too. */
const A: Step = [ALL, F]
const A9: Step = [without(ALL, 9), F]
const P: Step = [PAID, PAID_ALONE]
const P9: Step = [without(PAID, 9), PAID_ALONE]
const DRIFTED: Step = [drifting(ALL), F]

const TURNED = { job: jobOf({ filters: { by: 'id', state: 'paid' } }) }
/** A partial backfill of the narrower list. */
const PART: Partial<JobOptions> = {
  plan: { ...BACKFILL, kind: 'partial' },
  job: jobOf({ filters: { state: 'paid', by: 'id', month: '11' }, scope: { by: 'id', state: 'paid' } }),
}

const OUT: [number, string][] = [
  [4, 'out_of_scope'],
  [5, 'out_of_scope'],
]
const REMOVED: [number, string] = [9, 'removed']

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
    expect(history(scene.test)).toEqual(OUT)
  })

  it('is held back by the same brake', async () => {
    const few: Step = [upTo(10), PAID_ALONE]
    const scene = await lived([A, few, few])

    expect(held(scene.test)).toBe(20)
    expectRows(scene, ALL)
  })

  it.each<[string, Step[], [number, string][]]>([
    ['a row that leaves later was removed', [A, P, P, P9, P9], [...OUT, REMOVED]],
    [
      'rows that the other list lacks, after an untrusted walk of it',
      [A, [drifting(PAID), PAID_ALONE], P, P],
      OUT,
    ],
    ['rows of the very first walk, which was not trusted', [DRIFTED, A9, A9], [REMOVED]],
    ['the same filters in another order are no change', [P, [without(PAID, 9), TURNED], P9], [REMOVED]],
    [
      'a row missed once by the first list, and by the second',
      [A, A9, P9, P9],
      [...OUT, [9, 'out_of_scope']],
    ],
    ['rows of an untrusted walk of another list, when the first is back', [P, DRIFTED, P, P], OUT],
    [
      'rows of a partial backfill of the list were removed',
      [P, [ALL, PART], P, P],
      OUT.map(([id]) => [id, 'removed']),
    ],
    ['rows of the very first walk, before it was complete', [DRIFTED, P, P], OUT],
  ])('is distinguished from a removed one: %s', async (_what, steps, expected) => {
    const { test } = await lived(steps)

    expect(history(test)).toEqual(expected)
  })
})
