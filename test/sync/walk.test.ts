import { describe, expect, it } from 'vitest'
import { JobError, RetryableError } from '../../src/errors.ts'
import type { PageSource } from '../../src/sync/types.ts'
import { createReadAhead } from '../../src/sync/walk.ts'
import { jobOf } from '../helpers/jobs.ts'
import { itemOf } from '../helpers/pages.ts'
import { hearing, mirroredIds, runOnce, runs, walkOver, walks } from '../helpers/run-once.ts'
import { type Script, type ScriptedList, scriptedList, upTo } from '../helpers/scripted-list.ts'
import { openTestMirror } from '../helpers/test-mirror.ts'

describe('a list that does not move', () => {
  it.each([
    [0, [1]],
    [1, [1]],
    [4, [1, 2, 1]],
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

  it('is asked for nothing again if its total is ignored', async () => {
    const script: Script = { ids: upTo(7), instead: (page) => ({ ...page, total: 99 }) }

    const { list, result } = await walkOver(script, { job: jobOf({ total: 'ignore' }) })

    expect(result).toMatchObject({ error: null, coverage: null })
    expect(list.asked).toEqual([1, 2, 3])
  })
})

const PAGES = [1, 2, 3]

describe('a list that moves once while it is read', () => {
  it.each<[string, number[], (list: ScriptedList) => unknown]>([
    // The front is read again, and page 2 is compared with the ledger.
    ['an item added in front', [1, 2, 3, 4, 2, 1], ({ ids }) => ids.unshift(90)],
    // A step back: the pages before, until one holds a known item.
    ['an item deleted behind the reader', [1, 2, 1, 3, 4, 2, 1], ({ ids }) => ids.shift()],
    ['an item moved from the end to the front', [1, 2, 3, 4, 2, 1], ({ ids }) => ids.unshift(ids.pop() ?? 0)],
  ])('is repaired in one pass: %s', async (_what, asked, move) => {
    const { test, list, result } = await walkOver({
      ids: upTo(11),
      before: (answer, moving) => {
        if (answer === 2) move(moving)
      },
    })

    expect(result).toMatchObject({ error: null, coverage: 'repaired' })
    expect(list.asked).toEqual(asked)
    expect(mirroredIds(test)).toEqual(expect.arrayContaining(list.ids.toSorted((a, b) => a - b)))
    expect(walks(test)).toEqual([
      expect.objectContaining({ status: 'complete', coverage: 'repaired', passes: 1, pages: asked.length }),
    ])
  })

  it('is repaired, not steady, if only the first pass had fewer items than its total', async () => {
    const reasons: string[] = []
    const { test, list, result } = await walkOver(
      {
        ids: upTo(8),
        instead: (page, answer) => (answer === 2 ? { ...page, items: page.items.slice(1) } : page),
      },
      { observe: hearing({ pass: ({ why, pass }) => reasons.push(`${pass}: ${why}`) }) },
    )

    expect(result.coverage).toBe('repaired')
    expect(list.asked).toEqual([...PAGES, ...PAGES, 1])
    expect(mirroredIds(test)).toEqual(upTo(8))
    expect(reasons).toEqual(['2: 7 items came of a total of 8'])
  })
})

describe('a list whose items change places while it is read', () => {
  it('is known by the page that is asked for once more, and is read again', async () => {
    const { test, list, result } = await walkOver({
      ids: upTo(11),
      before: (answer, { ids }) => {
        if (answer === 2) ids.splice(0, 2, 2, 1)
      },
    })

    expect(result).toMatchObject({ error: null, coverage: 'repaired' })
    expect(list.asked.slice(0, 5)).toEqual([...PAGES, 4, 1])
    expect(walks(test)).toMatchObject([{ passes: 2 }])
  })
})

describe('a list that slides to earlier pages and grows while its last page is awaited again', () => {
  it('misses none that slid, where the total shows only that it grew', async () => {
    const { test, list, result } = await walkOver({
      ids: upTo(211),
      perPage: 5,
      before: (answer, { ids }) => {
        if (answer === 10) ids.push(212, 213, 214, 215, 216)
        if (answer !== 45) return
        ids.splice(0, 2)
        ids.push(...upTo(224).slice(216))
      },
    })

    expect(list.asked.slice(43, 47)).toEqual([44, 22, 44, 43])
    expect(result.coverage).toBe('repaired')
    expect(mirroredIds(test)).toEqual(upTo(224))
  })
})

describe('a list that slides to earlier pages while a walk steps back, and grows before the next page', () => {
  it('misses none that slid onto the page where the step began', async () => {
    const { test, list, result } = await walkOver({
      ids: upTo(60),
      before: (answer, { ids }) => {
        if (answer === 4) ids.shift()
        if (answer === 5) ids.splice(0, 3)
        if (answer === 7) ids.push(61, 62, 63, 64)
      },
    })

    expect(list.asked.slice(0, 9)).toEqual([1, 2, 3, 4, 3, 2, 4, 3, 5])
    expect(result.coverage).toBe('repaired')
    expect(mirroredIds(test)).toEqual(upTo(64))
  })
})

describe('a list that moves all the time', () => {
  it.each([1, 2, 3, 5])(
    'is drifted after so many passes, and never asked for more than twice its pages in one: %i',
    async (maxPasses) => {
      const { test, list, result } = await walkOver(
        {
          ids: upTo(30),
          // It turns round, and one item takes the place of another.
          before: (answer, moving) => {
            moving.ids = [30 + answer, ...moving.ids.slice(0, -1)].toReversed()
          },
        },
        { maxPasses },
      )

      expect(result).toMatchObject({ error: null, coverage: 'drifted' })
      expect(list.asked.length).toBeGreaterThanOrEqual(maxPasses * 10)
      expect(list.asked.length).toBeLessThanOrEqual(maxPasses * 20)
      expect(walks(test)).toEqual([
        expect.objectContaining({ status: 'complete', coverage: 'drifted', passes: maxPasses }),
      ])
    },
  )
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

  it('is aborted and awaited when the caller closes', async () => {
    let isAborted = false
    const source: Pick<PageSource, 'fetchPage'> = {
      fetchPage: (_page, _observe, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            isAborted = true
            reject(signal.reason)
          })
        }),
    }
    const pages = createReadAhead({
      source: { ...scriptedList({ ids: IDS }).source, ...source },
      observe: () => {},
      yieldToEventLoop: async () => {},
      signal: new AbortController().signal,
    })

    await pages.request({ why: 'forward', page: 2, before: null, until: null })
    await pages.close()

    expect(isAborted).toBe(true)
  })
})

/** A list of a hundred pages: while its first pages are read, items leave its front and join its end alternately. */
function movingList(stopAt: number | null = null) {
  return scriptedList({
    ids: upTo(300),
    before(answer, list) {
      if (answer === stopAt) throw new JobError('NETWORK', 'the cable is cut')
      if (answer > 50 || answer < 5) return
      if (answer % 4 === 0) list.ids.shift()
      if (answer % 4 === 2) list.ids.push(1000 + answer)
    },
  })
}

describe('what a walk expects to have missed', () => {
  it('is in the mirror and in the result of the run', async () => {
    const test = openTestMirror()

    const result = await runOnce(test, movingList())

    expect(result.coverage).toBe('repaired')
    expect(result.expectedMissed).toBeGreaterThan(0.1)
    expect(walks(test)).toMatchObject([{ expected_missed: result.expectedMissed }])
    expect(test.rows("SELECT expected_missed FROM sync_status WHERE organization = 'acme'")).toEqual([
      { expected_missed: result.expectedMissed },
    ])
  })

  it('covers the whole walk, though another process resumed it after the list stopped moving', async () => {
    const whole = await runOnce(openTestMirror(), movingList())
    const test = openTestMirror()
    const list = movingList(80)
    await runOnce(test, list)

    const resumed = await runOnce(test, list)

    expect(resumed).toMatchObject({ coverage: 'repaired', walk: { resumed: true } })
    expect(resumed.expectedMissed).toBeGreaterThan((whole.expectedMissed ?? 0) * 0.9)
  })
})
