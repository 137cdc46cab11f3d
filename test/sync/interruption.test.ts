import { describe, expect, it } from 'vitest'
import { RetryableError } from '../../src/errors.ts'
import { createClock, timeAt } from '../helpers/clock.ts'
import { hearing, mirroredIds, runOnce, runs, walks } from '../helpers/run-once.ts'
import { type ScriptedList, scriptedList, upTo } from '../helpers/scripted-list.ts'
import { openTestMirror, type TestMirror } from '../helpers/test-mirror.ts'

const HOUR = 3_600_000
const IDS = upTo(10)
const PAGES = [1, 2, 3, 4]

/** How a run may end after it wrote this many pages. */
type Ending = (test: TestMirror, list: ScriptedList, written: number) => Promise<void>

const ENDINGS: [string, Ending][] = [
  ['a fault of the server', (test, list, written) => failAfter(test, list, written)],
  [
    'a process that dies while it waits for the answer',
    async (test, list, written) => {
      const isWaiting = new Promise<void>((tell) => {
        const observe = hearing({ page: ({ page }) => page.number === written && tell() })
        void runOnce(test, hanging(list, written, written === 0 ? tell : () => {}), { observe })
      })
      await isWaiting
      test.close()
    },
  ],
]

async function failAfter(test: TestMirror, list: ScriptedList, written: number): Promise<void> {
  await runOnce(test, failing(list, written))
}

/** The same list; its server fails after this many pages. */
function failing(list: ScriptedList, written: number): ScriptedList {
  const fetchPage: ScriptedList['source']['fetchPage'] = (number, ...rest) =>
    number > written
      ? Promise.reject(new RetryableError('SERVER_ERROR', 'the server failed (500)'))
      : list.source.fetchPage(number, ...rest)
  return { ...list, source: { ...list.source, fetchPage } }
}

/** The same list; its server fails after any one answer. */
function failingAfterAnswer(list: ScriptedList): ScriptedList {
  let isAnswered = false
  const fetchPage: ScriptedList['source']['fetchPage'] = (...request) => {
    if (isAnswered) return Promise.reject(new RetryableError('SERVER_ERROR', 'the server failed (500)'))
    isAnswered = true
    return list.source.fetchPage(...request)
  }
  return { ...list, source: { ...list.source, fetchPage } }
}

/** The same list; its server never answers after this many pages. */
function hanging(list: ScriptedList, written: number, tell: () => void): ScriptedList {
  const fetchPage: ScriptedList['source']['fetchPage'] = (number, ...rest) => {
    if (number <= written) return list.source.fetchPage(number, ...rest)
    tell()
    return new Promise(() => {})
  }
  return { ...list, source: { ...list.source, fetchPage } }
}

async function resumed(
  ending: Ending,
  written: number,
  meanwhile: (test: TestMirror, list: ScriptedList) => void,
) {
  const clock = createClock()
  const before = openTestMirror({ clock })
  const list = scriptedList({ ids: [...IDS] })
  await ending(before, list, written)
  clock.advance(HOUR)
  const test = openTestMirror({ file: before.file, clock })
  meanwhile(test, list)
  const already = list.asked.splice(0)
  const result = await runOnce(test, list)
  return { test, list, result, already }
}

const AFTER = ENDINGS.flatMap(([name, ending]) =>
  [0, 1, 2, 3].map((written) => [name, written, ending] as const),
)

describe('a walk that is interrupted', () => {
  it.each(AFTER)(
    'continues where it stopped, and is steady: %s after page %i',
    async (_how, written, ending) => {
      const { test, list, result, already } = await resumed(ending, written, () => {})

      expect(already).toEqual(PAGES.slice(0, written))
      // The last page written once more, and at the end the spot check.
      expect(list.asked).toEqual([...PAGES.slice(Math.max(written - 1, 0)), 1])
      expect(result).toMatchObject({ error: null, coverage: 'steady' })
      expect(mirroredIds(test)).toEqual(IDS)
      expect(walks(test)).toEqual([
        expect.objectContaining({ status: 'complete', rows_seen: 10, pages: 5 + (written > 0 ? 1 : 0) }),
      ])
      expect(test.rows('SELECT * FROM orders_history')).toEqual([])
    },
  )

  it.each(AFTER.filter(([, written]) => written > 0))(
    'knows it when the list moved meanwhile, and loses nothing: %s after page %i',
    async (_how, written, ending) => {
      const { test, list, result } = await resumed(ending, written, (_test, moving) => {
        moving.ids.shift()
      })

      expect(result).toMatchObject({ error: null, coverage: 'repaired' })
      expect(mirroredIds(test)).toEqual(expect.arrayContaining(list.ids))
    },
  )

  it('steps back into a list that became shorter than its checkpoint', async () => {
    const { test, list, result } = await resumed(failAfter, 3, (_test, moving) => {
      moving.ids.splice(0, 7)
    })

    expect(list.asked).toEqual([3, 1])
    expect(result).toMatchObject({ error: null, coverage: 'repaired' })
    expect(mirroredIds(test)).toEqual(IDS)
  })

  it('still looks for where it stopped, when the list becomes shorter than the page on which it looks', async () => {
    const test = openTestMirror()
    const list = scriptedList({
      ids: upTo(19),
      before: (answer, { ids }) => {
        if (answer === 7) throw new RetryableError('SERVER_ERROR', 'the server failed (500)')
        if (answer === 9) ids.splice(0, 7)
      },
    })
    await runOnce(test, list)
    list.ids.splice(0, 4)
    list.ids.push(20, 21, 22)

    const result = await runOnce(test, list)

    expect(list.asked.slice(7, 11)).toEqual([6, 5, 4, 3])
    expect(result.coverage).toBe('repaired')
    expect(mirroredIds(test)).toEqual(upTo(22))
  })

  it('misses none that slid onto the page on which it looks, when the list becomes shorter and then longer', async () => {
    const test = openTestMirror()
    const list = scriptedList({
      ids: upTo(60),
      before: (answer, { ids }) => {
        if (answer === 6) throw new RetryableError('SERVER_ERROR', 'the server failed (500)')
        if (answer === 8) ids.splice(0, 3)
        if (answer === 11) ids.push(61, 62, 63, 64, 65, 66)
      },
    })
    await runOnce(test, list)
    list.ids.splice(0, 6)

    const result = await runOnce(test, list)

    expect(list.asked.slice(6, 11)).toEqual([5, 4, 3, 2, 5])
    expect(result.coverage).toBe('repaired')
    expect(mirroredIds(test)).toEqual(upTo(66))
  })

  it('asks for the first page when it is interrupted again after a step back to it', async () => {
    const { test, list } = await interrupted()
    list.ids.splice(0, 8)
    await runOnce(test, failingAfterAnswer(list))

    const result = await runOnce(test, list)

    expect(list.asked).toEqual([2, 1])
    expect(result).toMatchObject({ error: null, coverage: 'repaired' })
  })

  it('resumes within a later pass, too', async () => {
    const clock = createClock()
    const before = openTestMirror({ clock })
    const list = scriptedList({
      ids: upTo(8),
      before: () => {
        if (walks(before).at(-1)?.passes === 2 && list.asked.at(-1) === 3)
          throw new RetryableError('SERVER_ERROR', 'the server failed (500)')
      },
      // The first pass has fewer items than its total, so another one follows.
      instead: (page, answer) => (answer === 2 ? { ...page, items: page.items.slice(1) } : page),
    })
    await runOnce(before, list)
    before.close()
    const test = openTestMirror({ file: before.file, clock })

    const result = await runOnce(test, scriptedList({ ids: upTo(8) }))

    expect(list.asked).toEqual([1, 2, 3, 1, 2, 3])
    expect(result).toMatchObject({ error: null, coverage: 'repaired' })
    expect(walks(test)).toEqual([expect.objectContaining({ passes: 2, rows_seen: 8, pages: 8 })])
  })

  it('is only judged when it was stopped after its last page', async () => {
    const clock = createClock()
    const test = openTestMirror({ clock })
    const list = scriptedList({ ids: [...IDS] })
    const broken = { ...test.store, closeWalk: () => Promise.reject(new Error('killed')) }
    await runOnce(test, list, { store: broken })
    list.asked.splice(0)

    const result = await runOnce(test, list)

    expect(list.asked).toEqual([])
    expect(result).toMatchObject({ error: null, coverage: 'steady' })
    expect(runs(test).at(-1)).toMatchObject({ status: 'succeeded', first_page: null, pages: 0 })
  })
})

async function interrupted(): Promise<{ test: TestMirror; list: ScriptedList }> {
  const test = openTestMirror()
  const list = scriptedList({ ids: [...IDS] })
  await failAfter(test, list, 2)
  list.asked.splice(0)
  return { test, list }
}

describe('an open walk', () => {
  it('counts the time from its last written page', async () => {
    const { test, list } = await interrupted()
    test.clock.advance(20 * HOUR)
    await failAfter(test, list, 3)
    test.clock.advance(20 * HOUR)
    list.asked.splice(0)

    await runOnce(test, list)

    expect(list.asked).toEqual([3, 4, 1])
    expect(walks(test)).toEqual([
      expect.objectContaining({
        started_at: timeAt(0),
        finished_at: expect.stringMatching(/^2026-11-22T00:00:00/),
      }),
    ])
  })
})
