import { describe, expect, it } from 'vitest'
import { JobError } from '../../src/errors.ts'
import type { JobOptions } from '../../src/sync/job.ts'
import { decideRemovals, heldError, type RemovalRules, whyUntrusted } from '../../src/sync/removals.ts'
import type { HeldRemovals, MissingCounts, Removals } from '../../src/sync/store.ts'
import type { Coverage, Page } from '../../src/sync/types.ts'
import { ACME, jobOf } from '../helpers/jobs.ts'
import { itemOf } from '../helpers/pages.ts'
import { mirroredIds, runOnce } from '../helpers/run-once.ts'
import { type Script, scriptedList, upTo } from '../helpers/scripted-list.ts'
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

describe('removable rows', () => {
  it.each<[string, Partial<MissingCounts & { listed: number }>, Partial<RemovalRules>, Removals]>([
    ['nothing', { removable: 0 }, {}, NOTHING],
    ['as many rows as the brake allows', { removable: 10, live: 11 }, {}, REMOVE],
    ['more than both', { removable: 201, live: 1000 }, {}, { hold: 'brake' }],
    ['a part between two whole percents', { removable: 11, live: 55 }, {}, REMOVE],
    ['more than both, accepted', { removable: 201, live: 1000 }, { accept: true }, REMOVE],
    ['any row, with a brake of 0', { removable: 1 }, { brakeRows: 0, brakePercent: 0 }, { hold: 'brake' }],
    ['one row, of an empty list', { removable: 1, live: 1, listed: 0 }, {}, { hold: 'empty' }],
    ['one row, while another is held', { removable: 1, held: 1 }, {}, { hold: 'earlier' }],
    ['nothing, while a row is held', { removable: 0, held: 1 }, {}, { hold: 'earlier' }],
    ['nothing, while a row is held, accepted', { removable: 0, held: 1 }, { accept: true }, REMOVE],
  ])('are removed or held back: %s', (_what, missing, rules, expected) => {
    const all = { removable: 0, held: 0, live: 1000, listed: 999, ...missing }

    expect(decideRemovals(all, { ...RULES, ...rules })).toEqual(expected)
  })
})

it.each<[HeldRemovals, string]>([
  [
    { rows: 300, live: 1000, why: 'brake', outOfScope: 290 },
    '300 of 1,000 rows left the list, 290 of them since its filters or its path were changed, and are held back, since that is more',
  ],
  [
    { rows: 40, live: 40, why: 'empty', outOfScope: 0 },
    '40 of 40 rows left the list and are held back, since the list came without items',
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

// What the histories of test/simulation have none of: lists without a total, rejects, another path, and why exactly a row went.

const ALL = upTo(30)
const GONE = ALL.filter((id) => id !== 7)

/** A mirror and a list of thirty items, three a page, or what is said instead. */
function createScene(script: Partial<Script> = {}) {
  const test = openTestMirror()
  const list = scriptedList({ ids: ALL, ...script })
  return {
    list,
    test,
    /** A run over the list as it then stands, an hour after the last one; of these ids from now on, if any are given. */
    walk(ids?: readonly number[], options?: Partial<JobOptions>) {
      if (ids) list.ids = [...ids]
      test.clock.advance(3_600_000)
      return runOnce(test, list, options)
    },
    /** The ids in the history, with why they went. */
    history: () => test.rows('SELECT id, _reason FROM orders_history ORDER BY id').map(Object.values),
    /** By the counter and by the lines; both say the same. */
    held() {
      const counted = test.value('SELECT removals_held FROM sync_status WHERE organization_id = ?', ACME.id)
      expect(test.value(`SELECT count(*) FROM sync_missing WHERE state = 'held'`)).toBe(counted)
      return counted
    },
  }
}

const noTotal = (page: Page): Page => ({ ...page, total: null, lastPage: null })

describe('a list without a total', () => {
  const IGNORED = jobOf({ total: 'ignore' })

  it.each<[string, number[], number[], NonNullable<Script['instead']>]>([
    [
      'goes where another is twice on one page',
      GONE,
      GONE,
      (page) =>
        noTotal(page.number === 2 ? { ...page, items: [...page.items, ...page.items.slice(0, 1)] } : page),
    ],
    ['stays where another is on two pages', [...GONE, 1], ALL, noTotal],
  ])('loses an item, which %s', async (_what, listed, left, instead) => {
    const { test, walk } = createScene({ instead })
    await walk()

    for (let walks = 0; walks < 3; walks++) await walk(listed)

    expect(mirroredIds(test)).toEqual(left)
  })

  it('removes nothing by a resumed walk that met items of a later page on an earlier one', async () => {
    let isBroken = false
    const { list, test, walk } = createScene({
      before: () => {
        if (isBroken && list.asked.at(-1) === 4) throw new JobError('SERVER_ERROR', 'it failed')
      },
      instead: noTotal,
    })
    await walk()
    await walk(ALL.slice(0, -1))
    isBroken = true
    await walk()
    isBroken = false

    const result = await walk(ALL.slice(4, -1))

    expect(result.untrusted).toBe('an item came on two pages, and there is no total to tell why')
    expect(mirroredIds(test)).toEqual(ALL)
  })

  it('takes nothing away where a page ends it that says that there are more', async () => {
    let isCut = false
    const { test, walk } = createScene({
      instead: (page) => {
        const shown = { ...page, total: null }
        return isCut && page.number === 9 ? { ...shown, items: page.items.slice(0, 1), next: null } : shown
      },
    })
    await walk(ALL, { job: IGNORED })
    isCut = true

    for (let again = 0; again < 2; again++) {
      const { untrusted } = await walk(ALL, { job: IGNORED })

      expect(untrusted).toBe('the last page that it read says that there are more pages')
    }

    expect(mirroredIds(test)).toEqual(ALL)
  })
})

describe('an item that left the list', () => {
  it('is kept after a walk that met a new reject', async () => {
    let isRejecting = false
    const reject = itemOf('{"no":"key"}')
    const { test, walk } = createScene({
      instead: (page) => {
        if (!isRejecting) return page
        const items = page.number === 2 ? [...page.items, reject] : page.items
        return { ...page, items, total: (page.total ?? 0) + 1 }
      },
    })
    await walk()
    isRejecting = true
    const lines = []
    for (let walks = 0; walks < 3; walks++) {
      await walk(GONE)
      lines.push(test.value('SELECT count(*) FROM sync_missing'))
    }

    expect(lines).toEqual([0, 1, 0])
    expect(mirroredIds(test)).toEqual(GONE)
  })

  it('is kept by a walk that is not trusted, though it accepts removals', async () => {
    let isRejecting = false
    const { test, walk } = createScene({
      instead: (page) => (isRejecting ? { ...page, items: [...page.items, itemOf('{"no":"key"}')] } : page),
    })
    for (const ids of [ALL, GONE]) await walk(ids)
    isRejecting = true

    const { untrusted } = await walk(GONE, { removals: { ...RULES, accept: true } })

    expect(untrusted).toEqual(expect.any(String))
    expect(mirroredIds(test)).toEqual(ALL)
  })

  it('is kept by a walk that began while the list was full, though it was empty for a moment', async () => {
    const scene = createScene({
      before: (answer, list) => {
        if (answer === 11 + 9) list.ids = []
        if (answer === 11 + 9 + 3) list.ids = ALL
      },
    })
    await scene.walk()

    for (let walks = 0; walks < 2; walks++) expect((await scene.walk()).run?.rowsRemoved).toBe(0)

    expect(scene.list.asked.slice(11, 11 + 12)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 1, 1])
    expect([scene.held(), mirroredIds(scene.test)]).toEqual([0, ALL])
  })
})

/** Two that the narrower list lacks. */
const PAID = ALL.filter((id) => id !== 4 && id !== 5)

/** One item twice and another one missing, so that a walk drifts. */
const drifting = (ids: readonly number[]) => ids.toSpliced(20, 1, ids[0] ?? 0)

type Step = [ids: readonly number[], job: Partial<JobOptions>]

const WHOLE = { job: jobOf({ filters: {} }) }
const PAID_ALONE = { job: jobOf({ filters: { state: 'paid', by: 'id' } }) }
const OTHER_PATH = { job: jobOf({ path: '/api/v2/orders' }) }
const TURNED = { job: jobOf({ filters: { by: 'id', state: 'paid' } }) }
/** A partial backfill of the narrower list. */
const PART: Partial<JobOptions> = {
  plan: { ...SYNC, origin: 'backfill', kind: 'partial', resumeWithin: null },
  job: jobOf({ filters: { state: 'paid', by: 'id', month: '11' }, scope: { by: 'id', state: 'paid' } }),
}

/** A partial backfill of the whole list, as it was configured then. */
const PART_OF_WHOLE: Partial<JobOptions> = { ...PART, job: jobOf({ filters: { month: '11' }, scope: {} }) }

/** Walks of the whole list, and of the narrower one; without row 9, too. */
const A: Step = [ALL, WHOLE]
const A9: Step = [ALL.filter((id) => id !== 9), WHOLE]
const P: Step = [PAID, PAID_ALONE]
const P9: Step = [PAID.filter((id) => id !== 9), PAID_ALONE]
const DRIFTED: Step = [drifting(ALL), WHOLE]

/** A walk of the whole list that gets no page. */
const REFUSED: Step = [ALL, { ...WHOLE, source: async () => refusing.source }]
const refusing = scriptedList({ ids: ALL, before: () => Promise.reject(new JobError('FORBIDDEN', 'no')) })

const OUT = [
  [4, 'out_of_scope'],
  [5, 'out_of_scope'],
]
const REMOVED = [9, 'removed']

describe('a row that left the list with a change of filters', () => {
  it.each<[string, Step[], unknown[][]]>([
    ['by two walks with other filters, it is out of scope', [A, P, P], OUT],
    ['by two walks of another path, too', [A, [PAID, OTHER_PATH], [PAID, OTHER_PATH]], OUT],
    ['but not by one', [A, P], []],
    ['a row that leaves later was removed', [A, P, P, P9, P9], [...OUT, REMOVED]],
    ['after an untrusted walk of the other list', [A, [drifting(PAID), PAID_ALONE], P, P], OUT],
    ['rows of the very first walk, which was not trusted', [DRIFTED, A9, A9], [REMOVED]],
    ['the same filters in another order are no change', [P, [P9[0], TURNED], P9], [REMOVED]],
    ['missed once by the first list, and by the second', [A, A9, P9, P9], [...OUT, [9, 'out_of_scope']]],
    ['rows of an untrusted walk of another list, when the first is back', [P, DRIFTED, P, P], OUT],
    [
      'rows of a partial backfill of the list were removed',
      [P, [ALL, PART], P, P],
      OUT.map(([id]) => [id, 'removed']),
    ],
    ['rows of a partial backfill of another list', [P, [ALL, PART_OF_WHOLE], P, P], OUT],
    ['a row that leaves after a walk of another list got no page', [P, REFUSED, P9, P9], [REMOVED]],
    ['rows of the very first walk, before it was complete', [DRIFTED, P, P], OUT],
  ])('is distinguished from a removed one: %s', async (_what, steps, expected) => {
    const scene = createScene()
    for (const [ids, options] of steps) await scene.walk(ids, options)

    expect(scene.history()).toEqual(expected)
  })

  it('is held back by the same brake', async () => {
    const scene = createScene()
    const few: Step = [upTo(10), PAID_ALONE]
    for (const [ids, options] of [A, few, few]) await scene.walk(ids, options)

    expect([scene.held(), mirroredIds(scene.test)]).toEqual([20, ALL])
  })
})
