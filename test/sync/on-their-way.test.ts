import { describe, expect, it } from 'vitest'
import { PassingError } from '../../src/errors.ts'
import { createOnTheirWay, isWorthAskingBefore } from '../../src/sync/on-their-way.ts'
import type { PageSource } from '../../src/sync/types.ts'
import { createClock } from '../helpers/clock.ts'
import { mirroredIds, runOnce, runs } from '../helpers/run-once.ts'
import { type Script, scriptedList, upTo } from '../helpers/scripted-list.ts'
import { openTestMirror } from '../helpers/test-mirror.ts'

const IDS = upTo(118)
const FORWARD = { why: 'forward', before: null, until: null } as const

/** A run over 40 pages, each of which takes so long to answer; how many were asked for when each of the last was written. */
async function runAway(tookMs: number, script: Partial<Script> = {}) {
  const clock = createClock()
  const test = openTestMirror({ clock })
  const list = scriptedList({ ids: IDS, ...script, before: (answer) => waitFor(answer) })
  const waitFor = async (answer: number) => {
    clock.advance(tookMs)
    await script.before?.(answer, list)
  }
  const asked: number[] = []
  const mirror: typeof test.mirror = {
    ...test.mirror,
    savePage: (...page) => {
      asked.push(list.asked.length)
      return test.mirror.savePage(...page)
    },
  }
  const result = await runOnce(test, list, { mirror })
  return { test, list, result, asked: asked.slice(29) }
}

describe('to ask for the next page before one is written', () => {
  const others = Array<number>(31).fill(50)

  it.each<[number, number[], number, boolean]>([
    [32, [9, ...others], 0, false],
    [32, [10, ...others], 0, true],
    [31, others, 0, false],
    [32, [10, ...others], 3, false],
    [32, [20, ...others], 5, true],
    [32, [1000, ...others], 13, false],
    [999, [0, ...others], 5, false],
    [1000, [0, ...others], 5, true],
  ])(
    'after %i answers, the last in %j ms, and %i ms of writing: worth it is %s',
    (answers, answersTook, writingTook, expected) => {
      expect(isWorthAskingBefore({ answers, answersTook, writingTook })).toBe(expected)
    },
  )
})

describe('the next page', () => {
  it.each([
    [
      'before a page is written, where answers take their time',
      10,
      [30, 31, 33, 34, 35, 36, 37, 38, 39, 40, 41, 41],
    ],
    ['after that, where they are quick', 9, [30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41]],
  ])('is asked for %s', async (_when, tookMs, expected) => {
    const { test, result, asked } = await runAway(tookMs)

    expect(asked).toEqual(expected)
    expect(result).toMatchObject({ error: null, coverage: 'steady', run: { requests: 41, pages: 41 } })
    expect(mirroredIds(test)).toEqual(IDS)
  })

  it('fails after the one before it is written', async () => {
    const { test, result } = await runAway(10, {
      before: (answer) => {
        if (answer === 36) throw new PassingError('SERVER_ERROR', 'the server failed (500)')
      },
    })

    expect(result.error).toMatchObject({ code: 'SERVER_ERROR' })
    expect(runs(test)).toEqual([expect.objectContaining({ pages: 35, rows_added: 105, requests: 36 })])
  })

  it('is given up, and waited for, where the one before it cannot be written', async () => {
    let isGivenUp = false
    const source: Pick<PageSource, 'fetchPage'> = {
      fetchPage: (_page, _observer, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            isGivenUp = true
            reject(signal.reason)
          })
        }),
    }
    const clock = createClock()
    const quick = scriptedList({ ids: IDS, before: () => clock.advance(10) })
    const pages = createOnTheirWay({
      source: {
        ...quick.source,
        fetchPage: (page, ...rest) => (page <= 32 ? quick.source : source).fetchPage(page, ...rest),
      },
      observer: {
        onRequest: () => {},
        onRetry: () => {},
        onThrottled: () => {},
        onWait: () => {},
        onWaited: () => {},
      },
      now: clock.now,
      turn: async () => {},
      signal: new AbortController().signal,
    })
    for (const page of upTo(32)) await pages.fetch({ ...FORWARD, page })

    const writing = pages.writeMeanwhile({ ...FORWARD, page: 33 }, () =>
      Promise.reject(new Error('the disk is full')),
    )
    await expect(writing).rejects.toThrow('the disk is full')
    await pages.giveUp()

    expect(isGivenUp).toBe(true)
  })
})
