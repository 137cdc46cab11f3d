import { describe, expect, it } from 'vitest'
import { RetryableError } from '../../src/errors.ts'
import { createReadAhead } from '../../src/sync/read-ahead.ts'
import type { PageSource } from '../../src/sync/types.ts'
import { mirroredIds, runOnce, runs } from '../helpers/run-once.ts'
import { type Script, scriptedList, upTo } from '../helpers/scripted-list.ts'
import { openTestMirror } from '../helpers/test-mirror.ts'

const IDS = upTo(102)

/** A run over 34 pages of three items, and how many had been asked for when each was written. */
async function runPages(script: Partial<Script> = {}) {
  const test = openTestMirror()
  const list = scriptedList({ ids: IDS, ...script })
  const asked: number[] = []
  const mirror: typeof test.mirror = {
    ...test.mirror,
    savePage: (...page) => {
      asked.push(list.asked.length)
      return test.mirror.savePage(...page)
    },
  }
  return { test, asked, result: await runOnce(test, list, { mirror }) }
}

describe('the next page', () => {
  it('is asked for before a page is written, from the 32nd answer on, and none is left over at the end', async () => {
    const { test, result, asked } = await runPages()

    // Behind the last page one of a list that did not move is asked for once more.
    expect(asked.slice(29)).toEqual([30, 31, 33, 34, 35, 35])
    expect(result).toMatchObject({ error: null, coverage: 'steady', run: { requests: 35, pages: 35 } })
    expect(mirroredIds(test)).toEqual(IDS)
  })

  it('fails after the one before it is written', async () => {
    const { test, result } = await runPages({
      before: (answer) => {
        if (answer === 34) throw new RetryableError('SERVER_ERROR', 'the server failed (500)')
      },
    })

    expect(result.error).toMatchObject({ code: 'SERVER_ERROR' })
    expect(runs(test)).toEqual([expect.objectContaining({ pages: 33, rows_added: 99, requests: 34 })])
  })

  it('is aborted, and waited for, when the caller closes', async () => {
    let isAborted = false
    const source: Pick<PageSource, 'fetchPage'> = {
      fetchPage: (_page, _observer, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            isAborted = true
            reject(signal.reason)
          })
        }),
    }
    const pages = createReadAhead({
      source: { ...scriptedList({ ids: IDS }).source, ...source },
      observer: {
        onRequest: () => {},
        onRetry: () => {},
        onThrottled: () => {},
        onWait: () => {},
        onWaited: () => {},
      },
      turn: async () => {},
      signal: new AbortController().signal,
    })

    await pages.request({ why: 'forward', page: 2, before: null, until: null })
    await pages.close()

    expect(isAborted).toBe(true)
  })
})
