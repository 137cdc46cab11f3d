import { describe, expect, it } from 'vitest'
import { RetryableError } from '../../src/errors.ts'
import type { PageSource } from '../../src/sync/types.ts'
import { createReadAhead } from '../../src/sync/walk.ts'
import { mirroredIds, runOnce, runs } from '../helpers/run-once.ts'
import { type Script, scriptedList, upTo } from '../helpers/scripted-list.ts'
import { openTestMirror } from '../helpers/test-mirror.ts'

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
      yieldToEventLoop: async () => {},
      signal: new AbortController().signal,
    })

    await pages.request({ why: 'forward', page: 2, before: null, until: null })
    await pages.close()

    expect(isAborted).toBe(true)
  })
})
