import { describe, expect, it } from 'vitest'
import { JobError } from '../../src/errors.ts'
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
import { mirroredIds, runOnce, runs } from '../helpers/run-once.ts'
import { type Script, type ScriptedList, scriptedList, upTo } from '../helpers/scripted-list.ts'
import { openTestMirror } from '../helpers/test-mirror.ts'

describe('an item that left the list', () => {
  it('is removed when two trusted walks missed it, and is in the history', async () => {
    const scene = createScene()
    const { test, walk } = scene
    await walk()

    const first = await walk(without(upTo(30), 7))
    const between = mirroredIds(test)
    const second = await walk()

    expect(between).toEqual(upTo(30))
    expect([first, second].map(({ run }) => run?.rowsRemoved)).toEqual([0, 1])
    expectRows(scene, without(upTo(30), 7))
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

  it('is removed by the first walk if the list came in one answer', async () => {
    const scene = createScene({ ids: upTo(3) })
    await scene.walk()

    const { run } = await scene.walk([1, 3])

    expect(run).toMatchObject({ rowsRemoved: 1 })
    expectRows(scene, [1, 3])
  })

  it('that is back in the next walk stays, without history', async () => {
    const scene = createScene()
    const { test, walk } = scene

    for (const gone of [[], [7], [], [7], []]) await walk(without(upTo(30), ...gone))

    expectRows(scene, upTo(30))
    expect(history(test)).toEqual([])
    expect(test.value('SELECT _changed_at FROM orders WHERE id = 7')).toBe(timeAt(HOUR))
  })

  it('and comes back after its removal is live again, first seen then', async () => {
    const scene = createScene()
    const { test, walk } = scene
    for (const gone of [[], [7], [7], []]) await walk(without(upTo(30), ...gone))

    expectRows(scene, upTo(30))
    expect(history(test)).toEqual([[7, 'removed']])
    expect(test.rows('SELECT _first_seen_at, _changed_at FROM orders WHERE id = 7')).toEqual([
      { _first_seen_at: timeAt(4 * HOUR), _changed_at: timeAt(4 * HOUR) },
    ])
  })

  it('with a key of two parts, one with odd characters, is found by both', async () => {
    let names = ['a', '"', '\u0001\u007f', 'é\u2028😀', '\\', '/']
    const test = openTestMirror()
    const list = scriptedList({
      ids: upTo(6),
      instead: (page) => ({
        ...page,
        items: named(names.slice(page.number * 3 - 3, page.number * 3)),
        total: names.length,
      }),
    })
    const options = { job: jobOf({ key: ['id', 'name'] }), ...ACCEPT }
    await runOnce(test, list, options)

    names = names.toSpliced(2, 1)
    for (let count = 1; count <= 2; count++) await runOnce(test, list, options)

    expect(test.rows('SELECT name FROM orders').map(({ name }) => name)).toEqual(
      expect.arrayContaining(names),
    )
    expect(test.value('SELECT count(*) FROM orders')).toBe(names.length)
    expect(test.rows('SELECT name, _reason FROM orders_history')).toEqual([
      { name: '\u0001\u007f', _reason: 'removed' },
    ])
  })
})

function named(names: readonly string[]) {
  return names.map((name) => itemOf(JSON.stringify({ id: 1, name })))
}

const NO_TOTAL: NonNullable<Script['instead']> = (page) => ({ ...page, total: null, lastPage: null })

describe('a walk that is not trusted', () => {
  it('removes nothing and does not count: one that drifted', async () => {
    const scene = createScene()
    const { list, walk } = scene
    await walk()
    list.ids = without(upTo(30), 7)

    // Its pages hold items twice, and the total does not change.
    list.ids.splice(20, 2, 2, 3)
    const first = await walk()
    const second = await walk()

    expect([first, second].map(({ coverage }) => coverage)).toEqual(['drifted', 'drifted'])
    expectRows(scene, upTo(30))
    expect(scene.test.rows('SELECT * FROM sync_missing')).toEqual([])
  })

  it.each<[string, NonNullable<Script['instead']>]>([
    ['has no total', NO_TOTAL],
    ['has no total, and an item twice on one page', twiceOnOnePage],
  ])('is none that %s', async (_what, instead) => {
    const scene = createScene({ instead })
    await scene.walk()

    for (let count = 1; count <= 2; count++) await scene.walk(without(upTo(30), 7))

    expectRows(scene, without(upTo(30), 7))
  })

  it('is one without a total and with an item on two pages', async () => {
    const scene = createScene({ instead: NO_TOTAL })
    await scene.walk()

    for (let count = 1; count <= 3; count++) await scene.walk([...without(upTo(30), 7), 1])

    expectRows(scene, upTo(30))
  })

  it('is one that met a new reject, in any of its processes', async () => {
    const scene = createScene()
    const { test, list, walk } = scene
    await walk()
    const reject = { text: '{"no":"key"}', value: { no: 'key' } }
    const broken = rejecting(list, reject)

    const first = await walk(without(upTo(30), 7), { source: broken.stoppingAt(3) })
    const second = await walk(null, { source: broken.whole })
    const afterNew = test.rows('SELECT * FROM sync_missing')
    for (let count = 1; count <= 2; count++) await walk(null, { source: broken.whole })

    expect([first, second].map(({ error, coverage }) => [error?.code, coverage])).toEqual([
      ['INTERNAL', null],
      [undefined, 'repaired'],
    ])
    expect(afterNew).toEqual([])
    expectRows(scene, without(upTo(30), 7))
  })

  it('is a partial one; rows that it sees are no longer missed', async () => {
    const scene = createScene()
    const { walk } = scene
    const gone = without(upTo(30), 7)
    const partial = { plan: { ...BACKFILL, kind: 'partial', firstPage: 2 } as const }
    await walk()
    await walk(gone)

    await walk(gone, partial)
    const afterPartial = mirroredIds(scene.test)
    await walk(upTo(30), partial)
    await walk(gone)
    const afterSight = mirroredIds(scene.test)
    await walk(gone)

    expect([afterPartial, afterSight]).toEqual([upTo(30), upTo(30)])
    expectRows(scene, gone)
  })

  it('is no full backfill', async () => {
    const scene = createScene()
    const gone = without(upTo(30), 7)
    await scene.walk()
    await scene.walk(gone)

    await scene.walk(gone, { plan: BACKFILL, trigger: 'backfill' })

    expectRows(scene, gone)
  })
})

function twiceOnOnePage(page: Page): Page {
  const items = page.number === 2 ? [...page.items, ...page.items.slice(0, 1)] : page.items
  return { ...page, items, total: null, lastPage: null }
}

/** The list up to this page, which fails. */
function stopping({ source }: ScriptedList, page: number) {
  const fetchPage: typeof source.fetchPage = (number, observe, signal) =>
    number === page ? Promise.reject(new Error('down')) : source.fetchPage(number, observe, signal)
  return { ...source, fetchPage }
}

/** The list with an item without a usable key on its second page. */
function rejecting(list: ScriptedList, reject: Page['items'][number]) {
  const fetchPage: ScriptedList['source']['fetchPage'] = async (number, observe, signal) => {
    const page = await list.source.fetchPage(number, observe, signal)
    const items = number === 2 ? [...page.items, reject] : page.items
    return { ...page, items, total: (page.total ?? 0) + 1 }
  }
  const source = { ...list.source, fetchPage }
  return {
    whole: async () => source,
    stoppingAt: (page: number) => async () => stopping({ ...list, source }, page),
  }
}

describe('more removals than the brake allows', () => {
  const LEFT = upTo(18)

  it('are held back, and reported by every complete run', async () => {
    const scene = createScene()
    const { test, walk } = scene
    await walk()

    const results = [await walk(LEFT), await walk(LEFT), await walk(LEFT)]

    expect(results.map((result) => [result.error, result.heldBack?.code])).toEqual([
      [null, undefined],
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
    expectRows(scene, upTo(30))
  })

  it('are made by the first trusted walk that accepts them, and not before', async () => {
    const scene = createScene()
    const { test, list, walk } = scene
    for (const ids of [upTo(30), LEFT, LEFT]) await walk(ids)

    await walk(null, { ...ACCEPT, source: async () => stopping(list, 3) })
    const afterFailure = held(test)
    const { run, heldBack: told } = await walk(null, ACCEPT)

    expect(afterFailure).toBe(12)
    expect(told).toBeNull()
    expect(run).toMatchObject({ rowsRemoved: 12 })
    expect(held(test)).toBe(0)
    expectRows(scene, LEFT)
    expect(history(test)).toHaveLength(12)
  })

  it('are no longer held if seen again, and never made without acceptance, however few are left', async () => {
    const scene = createScene()
    const { test, walk } = scene
    for (const ids of [upTo(30), LEFT, LEFT]) await walk(ids)

    const some = await walk(upTo(29))
    const left = held(test)
    const more = await walk(upTo(29))
    const all = await walk(upTo(30))

    expect([some, more, all].map((result) => result.heldBack?.code)).toEqual([
      'REMOVALS_HELD',
      'REMOVALS_HELD',
      undefined,
    ])
    expect(left).toBe(1)
    expect(held(test)).toBe(0)
    expectRows(scene, upTo(30))
  })

  it('are also reported by a partial backfill and by a drifted walk', async () => {
    const { walk } = createScene()
    for (const ids of [upTo(30), LEFT, LEFT]) await walk(ids)

    const partial = await walk(LEFT, { plan: { ...BACKFILL, kind: 'partial', firstPage: 4 } })
    const drifted = await walk(LEFT.toSpliced(8, 1, 2))

    expect([partial, drifted].map(({ coverage, heldBack: told }) => [coverage, told?.code])).toEqual([
      [null, 'REMOVALS_HELD'],
      ['drifted', 'REMOVALS_HELD'],
    ])
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
      instead: NO_TOTAL,
    })
    const { walk } = scene
    for (const ids of [upTo(30), without(upTo(30), 30)]) await walk(ids)
    isBroken = true
    await walk()
    isBroken = false

    const result = await walk(without(upTo(30), 1, 2, 3, 4, 30))

    expect(result.untrusted).toBe('an item came on two pages, and there is no total to tell why')
    expectRows(scene, upTo(30))
  })

  it('removes nothing by walks that end in another, shorter list', async () => {
    const script: Partial<Script> = {
      before: (answer, list) => {
        if (answer > 10) list.ids = list.asked.at(-1) === 10 ? upTo(27).slice(3) : list.ids
      },
    }
    const scene = createScene(script)
    await scene.walk(upTo(30), { job: IGNORED })

    const untrusted = []
    for (let count = 0; count < 2; count++)
      untrusted.push((await scene.walk(upTo(30), { job: IGNORED })).untrusted)

    expect(untrusted).toEqual(
      untrusted.map(() => 'an item came on two pages, and there is no total to tell why'),
    )
    expectRows(scene, upTo(30))
  })

  it.each([0, 1])(
    'takes nothing away where a page with %i items ends it that says that there are more',
    async (count) => {
      let isCut = false
      const scene = createScene({
        instead: (page) =>
          isCut && page.number === 9 ? { ...page, items: page.items.slice(0, count), next: null } : page,
      })
      await scene.walk(upTo(30), { job: IGNORED })
      isCut = true

      for (let again = 0; again < 2; again++) {
        const { untrusted } = await scene.walk(upTo(30), { job: IGNORED })

        expect(untrusted).toBe('it ended on a page that says itself that there are more')
      }

      expectRows(scene, upTo(30))
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
        if (answer === 11 + 9 + 3) list.ids = upTo(30)
      },
    }
    const scene = createScene(script)
    await scene.walk()

    const glitch = await scene.walk()
    const after = await scene.walk()

    expect(scene.list.asked.slice(11, 11 + 12)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 1, 1])
    expect([glitch, after].map(({ run }) => run?.rowsRemoved)).toEqual([0, 0])
    expect(held(scene.test)).toBe(0)
    expectRows(scene, upTo(30))
    expect(history(scene.test)).toEqual([])
  })

  it('is held back by the second walk that finds it empty, however few rows are removable', async () => {
    const script: Partial<Script> = {
      before: (answer, list) => {
        if (answer === 11 + 9) list.ids = []
      },
    }
    const scene = createScene(script)
    await scene.walk()
    await scene.walk()

    const result = await scene.walk()

    expect(result.heldBack?.message).toContain('the list came without items')
    expectRows(scene, upTo(30))
  })
})
