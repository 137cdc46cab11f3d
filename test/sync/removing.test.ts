import { describe, expect, it } from 'vitest'
import { JobError } from '../../src/errors.ts'
import type { JobOptions } from '../../src/sync/job.ts'
import type { Page } from '../../src/sync/types.ts'
import { timeAt } from '../helpers/clock.ts'
import { ACME, jobOf } from '../helpers/jobs.ts'
import { itemOf } from '../helpers/pages.ts'
import {
  ACCEPT,
  BACKFILL,
  createScene,
  expectRows,
  HOUR,
  held,
  history,
  without,
} from '../helpers/removal-scene.ts'
import { runs } from '../helpers/run-once.ts'
import { type Script, upTo } from '../helpers/scripted-list.ts'

type Step = [ids: readonly number[], options?: Partial<JobOptions>]

const ALL = upTo(30)
const GONE = without(ALL, 7)
const FULL_BACKFILL = { plan: BACKFILL, trigger: 'backfill' } as const
const PARTIAL = { plan: { ...BACKFILL, kind: 'partial', firstPage: 2 } } as const

const noTotal = (page: Page): Page => ({ ...page, total: null, lastPage: null })

function twiceOnOnePage(page: Page): Page {
  const items = page.number === 2 ? [...page.items, ...page.items.slice(0, 1)] : page.items
  return noTotal({ ...page, items })
}

async function lived(steps: readonly Step[], script: Partial<Script> = {}) {
  const scene = createScene(script)
  const results = []
  for (const [ids, options] of steps) results.push(await scene.walk(ids, options))
  return { ...scene, results, scene }
}

describe('an item that left the list', () => {
  it('is removed when two trusted walks missed it, and is in the history', async () => {
    const { scene, test, results } = await lived([[ALL], [GONE], [GONE]])

    expect(results.map(({ run }) => run?.rowsRemoved)).toEqual([0, 0, 1])
    expectRows(scene, GONE)
    expect(
      test.rows('SELECT _organization_id, id, _json, _valid_from, _valid_to, _reason FROM orders_history'),
    ).toEqual([
      {
        _organization_id: ACME.id,
        id: 7,
        _json: '{"id":7}',
        _valid_from: timeAt(HOUR),
        _valid_to: timeAt(3 * HOUR),
        _reason: 'removed',
      },
    ])
    expect(test.rows('SELECT * FROM sync_missing')).toEqual([])
  })

  it.each<[string, Step[], readonly number[], Script['instead']?]>([
    ['removed after one walk in one answer', [[[1, 2, 3]], [[1, 3]]], [1, 3]],
    ['kept after one walk', [[ALL], [GONE]], ALL],
    ['removed where another is twice on one page', [[ALL], [GONE], [GONE]], GONE, twiceOnOnePage],
    [
      'kept where another is on two pages, without a total',
      [[ALL], [[...GONE, 1]], [[...GONE, 1]], [[...GONE, 1]]],
      ALL,
      noTotal,
    ],
    ['kept after a walk and a partial one', [[ALL], [GONE], [GONE, PARTIAL]], ALL],
    ['kept after a partial walk that saw it', [[ALL], [GONE], [ALL, PARTIAL], [GONE]], ALL],
    ['removed after a walk and a full backfill', [[ALL], [GONE], [GONE, FULL_BACKFILL]], GONE],
  ])('is %s', async (_what, steps, left, instead) => {
    const { scene } = await lived(steps, instead ? { instead } : {})

    expectRows(scene, left)
  })

  it('is kept after walks that met a new reject, in any of their processes', async () => {
    const state = { isRejecting: false, isBroken: false }
    const reject = itemOf('{"no":"key"}')
    const scene = createScene({
      before: () => {
        if (state.isBroken && scene.list.asked.at(-1) === 3) throw new Error('down')
      },
      instead: (page) => {
        if (!state.isRejecting) return page
        const items = page.number === 2 ? [...page.items, reject] : page.items
        return { ...page, items, total: (page.total ?? 0) + 1 }
      },
    })
    await scene.walk()
    Object.assign(state, { isRejecting: true, isBroken: true })
    const first = await scene.walk(GONE)
    state.isBroken = false
    const second = await scene.walk()
    const afterNew = scene.test.rows('SELECT * FROM sync_missing')
    for (let count = 1; count <= 2; count++) await scene.walk()

    expect([first, second].map(({ error, coverage }) => [error?.code, coverage])).toEqual([
      ['INTERNAL', null],
      [undefined, 'repaired'],
    ])
    expect(afterNew).toEqual([])
    expectRows(scene, GONE)
  })
})

describe('more removals than the brake allows', () => {
  const LEFT = upTo(18)

  it('are held back, and reported by every complete run', async () => {
    const { scene, test, results } = await lived([[ALL], [LEFT], [LEFT], [LEFT], [LEFT, PARTIAL]])

    expect(results.map((result) => [result.error, result.heldBack?.code])).toEqual([
      [null, undefined],
      [null, undefined],
      [null, 'REMOVALS_HELD'],
      [null, 'REMOVALS_HELD'],
      [null, 'REMOVALS_HELD'],
    ])
    expect(runs(test).at(-1)).toMatchObject({
      status: 'succeeded',
      rows_removed: 0,
      error_code: 'REMOVALS_HELD',
      error_message: expect.stringContaining('acme orders: 12 of 30 rows'),
    })
    expect(held(test)).toBe(12)
    expectRows(scene, ALL)
  })

  it('are made by the first trusted walk that accepts them, and not before', async () => {
    let isBroken = false
    const before = () => isBroken && Promise.reject(new Error('down'))
    const { scene, test, walk } = await lived([[ALL], [LEFT], [LEFT]], { before })

    isBroken = true
    await walk(null, ACCEPT)
    const afterFailure = held(test)
    isBroken = false
    const { run, heldBack: told } = await walk(null, ACCEPT)

    expect(afterFailure).toBe(12)
    expect(told).toBeNull()
    expect(run).toMatchObject({ rowsRemoved: 12 })
    expect(held(test)).toBe(0)
    expectRows(scene, LEFT)
    expect(history(test)).toHaveLength(12)
  })
})

describe('a list without a total', () => {
  const IGNORED = jobOf({ total: 'ignore' })

  it('removes nothing by a resumed walk that met items of a later page on an earlier one', async () => {
    let isBroken = false
    const scene = createScene({
      before: () => {
        if (isBroken && scene.list.asked.at(-1) === 4) throw new JobError('SERVER_ERROR', 'it failed')
      },
      instead: noTotal,
    })
    const { walk } = scene
    for (const ids of [ALL, without(ALL, 30)]) await walk(ids)
    isBroken = true
    await walk()
    isBroken = false

    const result = await walk(without(ALL, 1, 2, 3, 4, 30))

    expect(result.untrusted).toBe('an item came on two pages, and there is no total to tell why')
    expectRows(scene, ALL)
  })

  it.each([0, 1])(
    'takes nothing away where a page with %i items ends it that says that there are more',
    async (count) => {
      let isCut = false
      const scene = createScene({
        instead: (page) =>
          isCut && page.number === 9 ? { ...page, items: page.items.slice(0, count), next: null } : page,
      })
      await scene.walk(ALL, { job: IGNORED })
      isCut = true

      for (let again = 0; again < 2; again++) {
        const { untrusted } = await scene.walk(ALL, { job: IGNORED })

        expect(untrusted).toBe('the last page that it read says that there are more pages')
      }

      expectRows(scene, ALL)
    },
  )
})

describe('an empty list', () => {
  it.each([1, 30])('holds all rows back, however few: %i', async (count) => {
    const scene = createScene({ ids: upTo(count) })
    const { test, walk } = scene
    await walk()

    const result = await walk([])

    expect(result.heldBack?.message).toContain(`${count} of ${count === 1 ? '1 row' : '30 rows'}`)
    expect(result.heldBack?.message).toContain('the list came without items')
    expect(held(test)).toBe(count)
    expectRows(scene, upTo(count))
  })

  it('removes nothing by one walk that started while it was full', async () => {
    const script: Partial<Script> = {
      before: (answer, list) => {
        if (answer === 11 + 9) list.ids = []
        if (answer === 11 + 9 + 3) list.ids = ALL
      },
    }
    const scene = createScene(script)
    await scene.walk()

    const glitch = await scene.walk()
    const after = await scene.walk()

    expect(scene.list.asked.slice(11, 11 + 12)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 1, 1])
    expect([glitch, after].map(({ run }) => run?.rowsRemoved)).toEqual([0, 0])
    expect(held(scene.test)).toBe(0)
    expectRows(scene, ALL)
    expect(history(scene.test)).toEqual([])
  })
})
