import { describe, expect, it } from 'vitest'
import { RetryableError } from '../../src/errors.ts'
import { itemOf } from '../helpers/pages.ts'
import { hearing, mirroredIds, runOnce, runs, walkOver, walks } from '../helpers/run-once.ts'
import { type Script, scriptedList, upTo } from '../helpers/scripted-list.ts'
import { openTestMirror } from '../helpers/test-mirror.ts'

describe('a list that does not move', () => {
  it.each([
    [0, [1]],
    [1, [1]],
    [10, [1, 2, 3, 4, 1]],
    [30, [...upTo(10), 4]],
  ])(
    'is steady with its pages, and one of them once more: %i items of three a page',
    async (count, pages) => {
      const { test, list, result } = await walkOver({ ids: upTo(count) })

      expect(result).toMatchObject({ error: null, coverage: 'steady' })
      expect(list.asked).toEqual(pages)
      expect(mirroredIds(test)).toEqual(upTo(count))
      expect(walks(test)).toEqual([
        expect.objectContaining({
          status: 'complete',
          coverage: 'steady',
          next_page: null,
          pages: pages.length,
          rows_seen: count,
          total: count,
          passes: 1,
        }),
      ])
    },
  )
})

const PAGES = [1, 2, 3]

/** A list that moves before these answers of a walk, and the pages that are asked for. */
interface Moving {
  items: number
  perPage?: number
  moves?: Record<number, (ids: number[]) => unknown>
  /** The server fails before this answer, and the list moves until the next run. */
  breaks?: [answer: number, meanwhile: (ids: number[]) => unknown]
  asked: number[]
  /** How many pages were asked for before these. */
  after?: number
}

const push = (from: number, to: number) => (ids: number[]) => ids.push(...upTo(to).slice(from - 1))
const cut = (count: number) => (ids: number[]) => ids.splice(0, count)

describe('a list that moves while it is read', () => {
  it.each<[string, Moving]>([
    // The front is read again, and page 2 is compared with the ledger.
    [
      'gets an item in front',
      { items: 11, moves: { 2: (ids) => ids.unshift(90) }, asked: [1, 2, 3, 4, 2, 1] },
    ],
    // A step back: the pages before, until one holds a known item.
    ['loses one behind the reader', { items: 11, moves: { 2: cut(1) }, asked: [1, 2, 1, 3, 4, 2, 1] }],
    [
      'has its last item moved to the front',
      { items: 11, moves: { 2: (ids) => ids.unshift(ids.pop() ?? 0) }, asked: [1, 2, 3, 4, 2, 1] },
    ],
    // Known by the page that is asked for once more; then it is read again.
    [
      'has two items that change places',
      { items: 11, moves: { 2: (ids) => ids.splice(0, 2, 2, 1) }, asked: [...PAGES, 4, 1] },
    ],
    [
      'slides to earlier pages and grows while its last page is awaited again, so that the total shows only that it grew',
      {
        items: 211,
        perPage: 5,
        moves: { 10: push(212, 216), 45: (ids) => cut(2)(ids) && push(217, 224)(ids) },
        after: 43,
        asked: [44, 22, 44, 43],
      },
    ],
    [
      'slides onto the page where a step back began, and grows before the next page',
      { items: 60, moves: { 4: cut(1), 5: cut(3), 7: push(61, 64) }, asked: [1, 2, 3, 4, 3, 2, 4, 3, 5] },
    ],
    [
      'becomes shorter than the checkpoint of an interrupted walk',
      { items: 10, breaks: [4, cut(7)], after: 4, asked: [3, 1] },
    ],
    [
      'becomes shorter than the page on which a resumed walk looks for where it stopped',
      {
        items: 19,
        moves: { 9: cut(7) },
        breaks: [7, (ids) => cut(4)(ids) && push(20, 22)(ids)],
        after: 7,
        asked: [6, 5, 4, 3],
      },
    ],
    [
      'slides onto that page, becoming shorter and then longer',
      {
        items: 60,
        moves: { 8: cut(3), 11: push(61, 66) },
        breaks: [6, cut(6)],
        after: 6,
        asked: [5, 4, 3, 2, 5],
      },
    ],
  ])('is repaired, and nothing on it is missed, when it %s', async (_what, moving) => {
    const { items, perPage = 3, moves = {}, breaks, asked, after = 0 } = moving
    const test = openTestMirror()
    const list = scriptedList({
      ids: upTo(items),
      perPage,
      before: (answer, { ids }) => {
        if (answer === breaks?.[0]) throw new RetryableError('SERVER_ERROR', 'the server failed (500)')
        moves[answer]?.(ids)
      },
    })
    if (breaks) {
      await runOnce(test, list)
      breaks[1](list.ids)
    }

    const result = await runOnce(test, list)

    expect(result).toMatchObject({ error: null, coverage: 'repaired' })
    expect(list.asked.slice(after, after + asked.length)).toEqual(asked)
    expect(mirroredIds(test)).toEqual(expect.arrayContaining(list.ids))
  })

  it('is repaired, not steady, if only its first pass had fewer items than its total', async () => {
    const reasons: string[] = []
    const { list, result } = await walkOver(
      {
        ids: upTo(8),
        instead: (page, answer) => (answer === 2 ? { ...page, items: page.items.slice(1) } : page),
      },
      { observe: hearing({ pass: ({ why, pass }) => reasons.push(`${pass}: ${why}`) }) },
    )

    expect(result.coverage).toBe('repaired')
    expect(list.asked).toEqual([...PAGES, ...PAGES, 1])
    expect(reasons).toEqual(['2: 7 items came of a total of 8'])
  })
})

it('a list that moves all the time is drifted after so many passes, and never asked for more than twice its pages in one', async () => {
  const { test, list, result } = await walkOver(
    {
      ids: upTo(30),
      // It turns round, and one item takes the place of another.
      before: (answer, moving) => {
        moving.ids = [30 + answer, ...moving.ids.slice(0, -1)].toReversed()
      },
    },
    { maxPasses: 2 },
  )

  expect(result).toMatchObject({ error: null, coverage: 'drifted' })
  expect(list.asked.length).toBeGreaterThanOrEqual(2 * 10)
  expect(list.asked.length).toBeLessThanOrEqual(2 * 20)
  expect(walks(test)).toMatchObject([{ status: 'complete', coverage: 'drifted', passes: 2 }])
})

describe('a list that says in every pass that there is more', () => {
  it.each<[string, Script, RegExp, number[]]>([
    [
      'than its total',
      { ids: upTo(7), instead: (page) => ({ ...page, total: 8 }) },
      /acme orders.*7 items came of a total of 8.*total: ignore/,
      PAGES,
    ],
    [
      'than its last page',
      { ids: upTo(3), instead: (page) => ({ ...page, next: null, lastPage: 10, total: null }) },
      /3 items came, and the last page says that there are more pages/,
      [1],
    ],
  ])('%s is incomplete: its rows are kept and the walk is abandoned', async (_what, script, says, pages) => {
    const { test, list, result } = await walkOver(script)

    expect(result).toMatchObject({ coverage: null, error: { code: 'INCOMPLETE' } })
    expect(result.error?.message).toMatch(says)
    expect(list.asked).toEqual([...pages, ...pages, ...pages])
    expect(mirroredIds(test)).toEqual(script.ids)
    expect(walks(test)).toEqual([expect.objectContaining({ status: 'abandoned', coverage: null, passes: 3 })])
    expect(test.rows('SELECT last_run_status, error_code, as_of FROM sync_status')).toContainEqual({
      last_run_status: 'failed',
      error_code: 'INCOMPLETE',
      as_of: null,
    })
  })
})

describe('a list with items without a usable key', () => {
  it('is steady, since rejected items count as seen', async () => {
    const { test, result } = await walkOver({
      ids: upTo(5),
      instead: (page) => ({
        ...page,
        items: page.items.with(0, itemOf(`{"page":${page.number}}`)),
      }),
    })

    expect(result).toMatchObject({ error: null, coverage: 'steady' })
    expect(mirroredIds(test)).toEqual([2, 3, 5])
    expect(walks(test)).toEqual([expect.objectContaining({ rows_seen: 5 })])
  })
})

const IDS = upTo(18)

/** Runs over six pages of three items; notes how many pages had been asked for when each was written. */
async function runSixPages(script: Partial<Script> = {}) {
  const test = openTestMirror()
  const list = scriptedList({ ids: IDS, ...script })
  const asked: number[] = []
  const store: typeof test.store = {
    ...test.store,
    commit: (...page) => {
      asked.push(list.asked.length)
      return test.store.commit(...page)
    },
  }
  return { test, asked, result: await runOnce(test, list, { store }) }
}

describe('the next page', () => {
  it('is asked for before each page is written, and none is left at the end', async () => {
    const { test, result, asked } = await runSixPages()

    // After the sixth page the spot check.
    expect(asked).toEqual([2, 3, 4, 5, 6, 7, 7])
    expect(result).toMatchObject({ error: null, coverage: 'steady', run: { requests: 7, pages: 7 } })
    expect(mirroredIds(test)).toEqual(IDS)
  })

  it('fails after the one before it is written', async () => {
    const { test, result } = await runSixPages({
      before: (answer) => {
        if (answer === 4) throw new RetryableError('SERVER_ERROR', 'the server failed (500)')
      },
    })

    expect(result.error).toMatchObject({ code: 'SERVER_ERROR' })
    expect(runs(test)).toEqual([expect.objectContaining({ pages: 3, rows_added: 9, requests: 4 })])
  })
})
