import { describe, expect, it } from 'vitest'
import { RetryableError } from '../../src/errors.ts'
import type { JobOptions, JobResult } from '../../src/sync/job.ts'
import { decideRemovals, heldError, type RemovalRules, whyUntrusted } from '../../src/sync/removals.ts'
import type { HeldRemovals, MissingCounts, Removals } from '../../src/sync/store.ts'
import type { Coverage, Page } from '../../src/sync/types.ts'
import { jobOf } from '../helpers/jobs.ts'
import { itemOf } from '../helpers/pages.ts'
import { runOnce } from '../helpers/run-once.ts'
import { scriptedList, upTo } from '../helpers/scripted-list.ts'
import { openTestMirror, SYNC } from '../helpers/test-mirror.ts'

const END = { repeatedAcrossPages: false, isShort: false }

describe('a complete walk', () => {
  it.each<[string, Coverage | null, Partial<typeof END>, number, string | null]>([
    ['that is repaired, though items were on two pages', 'repaired', { repeatedAcrossPages: true }, 0, null],
    ['that drifted', 'drifted', { repeatedAcrossPages: true }, 0, 'what did not come out even'],
    ['without a total', null, {}, 0, null],
    ['without a total, an item on two pages', null, { repeatedAcrossPages: true }, 0, 'an item came on two'],
    ['without a total, that ended too early', null, { isShort: true }, 0, 'there are more'],
    ['that met a new reject', 'steady', {}, 1, '1 item without a usable key'],
  ])('is trusted, or says why not: %s', (_what, coverage, end, newRejects, expected) => {
    const why = coverage === 'drifted' ? 'what did not come out even' : null

    const told = whyUntrusted({ coverage, why, ...END, ...end }, newRejects)

    expect(told).toEqual(expected === null ? null : expect.stringContaining(expected))
  })
})

const RULES: RemovalRules = { brakePercent: 20, brakeRows: 10, accept: false }
const NOTHING: Removals = 'none'
const REMOVE: Removals = 'remove'
const HOLD: Removals = 'hold'

describe('removable rows', () => {
  it.each<[string, Partial<MissingCounts & { listed: number }>, Partial<RemovalRules>, Removals]>([
    ['nothing', { removable: 0 }, {}, NOTHING],
    ['as many rows as the brake allows', { removable: 10, live: 11 }, {}, REMOVE],
    ['more than both', { removable: 201, live: 1000 }, {}, HOLD],
    ['a part between two whole percents', { removable: 11, live: 55 }, {}, REMOVE],
    ['more than both, accepted', { removable: 201, live: 1000 }, { accept: true }, REMOVE],
    ['any row, with a brake of 0', { removable: 1 }, { brakeRows: 0, brakePercent: 0 }, HOLD],
    ['one row, of an empty list', { removable: 1, live: 1, listed: 0 }, {}, HOLD],
    ['one row, while another is held', { removable: 1, held: 1 }, {}, HOLD],
    ['nothing, while a row is held', { removable: 0, held: 1 }, {}, HOLD],
    ['nothing, while a row is held, accepted', { removable: 0, held: 1 }, { accept: true }, REMOVE],
  ])('are removed or held back: %s', (_what, missing, rules, expected) => {
    const all = { removable: 0, held: 0, live: 1000, listed: 999, ...missing }

    expect(decideRemovals(all, { ...RULES, ...rules })).toEqual(expected)
  })
})

it.each<[HeldRemovals, string]>([
  [
    { rows: 300, live: 1000, outOfScope: 290 },
    '300 of 1,000 rows left the list, 290 of them since its filters or its path were changed, and are held back, since so many left at once: more than removals.brakePercent',
  ],
  [
    { rows: 40, live: 40, outOfScope: 0 },
    '40 of 40 rows left the list and are held back, since so many left at once: more than removals.brakePercent and brakeRows allow, or all of them',
  ],
])(
  'the error about removals held back names the list, how many of how many, why, and what to type',
  (held, words) => {
    const job = jobOf({}, { id: '1', name: "o'neill & co" })

    const { code, message } = heldError(job, held, null)

    expect(code).toBe('REMOVALS_HELD')
    expect(message).toContain(`o'neill & co orders: ${words}`)
    expect(message).toContain(
      `admin-mirror sync --org 'o'\\''neill & co' --collection orders --accept-removals`,
    )
  },
)

// What the histories of test/simulation have none of: rejects, another path, and why exactly a row went.

const ALL = upTo(30)

/** A run over the list as it then stands, an hour after the last one. */
interface Step {
  ids: readonly number[]
  options?: Partial<JobOptions>
  /** What the server shows of a page. */
  shows?: (page: Page) => Page
  /** The list is empty for these answers, which are counted from 1; or the server fails before this one. */
  emptyAt?: readonly number[]
  failsAt?: number
}

/** What these runs make of a mirror: the last result, and what went and why. */
async function playSteps(steps: readonly Step[]) {
  const test = openTestMirror()
  let result: JobResult | null = null
  for (const { ids, options, shows, emptyAt, failsAt } of steps) {
    const list = scriptedList({
      ids: [...ids],
      before: (answer, { ids: listed }) => {
        if (answer === failsAt) throw new RetryableError('SERVER_ERROR', 'it failed')
        listed.splice(0, listed.length, ...(emptyAt?.includes(answer) ? [] : ids))
      },
      ...(shows && { instead: shows }),
    })
    test.clock.advance(3_600_000)
    result = await runOnce(test, list, options)
  }
  return { result, gone: test.rows('SELECT id, _reason FROM orders_history ORDER BY id').map(Object.values) }
}

const without = (...gone: number[]) => ALL.filter((id) => !gone.includes(id))
const thrice = (step: Step): Step[] => [step, step, step]

const rejecting = (page: Page): Page =>
  page.number === 2 ? { ...page, items: [...page.items, itemOf('{"no":"key"}')] } : page
const counted = (page: Page): Page => ({ ...rejecting(page), total: (page.total ?? 0) + 1 })

const WHOLE = { job: jobOf({ filters: {} }) }
const PAID_ALONE = { job: jobOf({ filters: { state: 'paid', by: 'id' } }) }
const ACCEPTING = { removals: { ...RULES, accept: true } }

/** A partial backfill of the narrower list. */
const PART: Partial<JobOptions> = {
  plan: { ...SYNC, origin: 'backfill', kind: 'partial', resumeWithin: null },
  job: jobOf({ filters: { state: 'paid', by: 'id', month: '11' }, scope: { by: 'id', state: 'paid' } }),
}

const PART_OF_ALL: Step = {
  ids: ALL,
  options: { ...PART, job: jobOf({ filters: { month: '11' }, scope: {} }) },
}

/** Two that the narrower list lacks. */
const PAID = without(4, 5)

/** One item twice and another one missing, so that a walk drifts. */
const drifting = (ids: readonly number[]) => ids.toSpliced(20, 1, ids[0] ?? 0)

/** Walks of the whole list, and of the narrower one; without row 9, too. */
const A: Step = { ids: ALL, options: WHOLE }
const A9: Step = { ids: without(9), options: WHOLE }
const P: Step = { ids: PAID, options: PAID_ALONE }
const P9: Step = { ids: without(4, 5, 9), options: PAID_ALONE }
const TURNED: Step = { ids: P9.ids, options: { job: jobOf({ filters: { by: 'id', state: 'paid' } }) } }
const OTHER_PATH: Step = { ids: PAID, options: { job: jobOf({ path: '/api/v2/orders' }) } }
const DRIFTED: Step = { ids: drifting(ALL), options: WHOLE }
const FEW: Step = { ids: upTo(10), options: PAID_ALONE }
const HELD = { message: expect.stringContaining('20 of 30 rows left the list since its filters or its path') }
/** With an item that has no usable key, which counts. */
const REJECTING: Step = { ids: A9.ids, shows: counted }
/** A walk of the whole list that gets no page. */
const REFUSED: Step = { ...A, failsAt: 1 }

const OUT = [
  [4, 'out_of_scope'],
  [5, 'out_of_scope'],
]
const REMOVED = [9, 'removed']

describe('a row that the list shows no more', () => {
  const rejected = '1 item without a usable key came for the first time'

  it.each<[string, Step[], gone: unknown[][], untrusted?: string | null, heldBack?: object | null]>([
    [
      'partial backfills, which remove nothing: it stays',
      [A, ...thrice({ ids: without(9), options: PART })],
      [],
    ],
    ['a new reject, and the same one twice more', [A, ...thrice(REJECTING)], [REMOVED]],
    [
      'a new reject, though removals are accepted: it stays',
      [A, A9, { ids: without(9), options: ACCEPTING, shows: rejecting }],
      [],
      rejected,
    ],
    ['a list that is empty for a moment: it stays', [A, { ...A, emptyAt: [9, 10, 11] }], []],
    ['two walks with other filters: it is out of scope', [A, P, P], OUT],
    ['two walks of another path, too', [A, OTHER_PATH, OTHER_PATH], OUT],
    ['a row that leaves later was removed', [A, P, P, P9, P9], [...OUT, REMOVED]],
    ['an untrusted walk of the other list', [A, { ...P, ids: drifting(PAID) }, P, P], OUT],
    ['the same filters in another order are no change', [P, TURNED, P9], [REMOVED]],
    ['missed once by each list', [A, A9, P9, P9], [...OUT, [9, 'out_of_scope']]],
    ['rows of a partial backfill of another list, when the first is back', [P, PART_OF_ALL, P, P], OUT],
    [
      'rows of a partial backfill of the list were removed',
      [P, { ids: ALL, options: PART }, P, P],
      OUT.map(([id]) => [id, 'removed']),
    ],
    ['a row that leaves after a walk of another list got no page', [P, REFUSED, P9, P9], [REMOVED]],
    ['rows of the very first walk, before it was complete', [DRIFTED, P, P], OUT],
    ['more rows than the brake allows: they stay', [A, FEW, FEW], [], null, HELD],
  ])('%s', async (_what, steps, gone, untrusted = null, heldBack = null) => {
    const played = await playSteps(steps)

    expect(played.gone).toEqual(gone)
    expect(played.result).toMatchObject({ untrusted, heldBack })
  })
})
