import { describe, expect, it } from 'vitest'
import {
  estimateText,
  newProgress,
  noteEvent,
  type Progress,
  progressLines,
} from '../../../src/cli/output/progress.ts'
import type { JobEvent } from '../../../src/sync/job.ts'

const RULES = {
  requestsPerMinute: null,
  sharePercent: 100,
  scope: 'token',
  fallbackWait: 1,
  maxWait: 1,
} as const

/** A list that has read so many of 40 pages, half a second each. */
function read(label: string, pages: number, limit: number | null = null): Progress {
  const list = newProgress(label, 'budget')
  noteEvent(list, { kind: 'request' }, 0, RULES)
  for (let number = 1; number <= pages; number++) {
    const page = { number, lastPage: 40, announcedLimit: limit }
    noteEvent(list, { kind: 'page', page, itemsInWalk: number * 25 } as JobEvent, number * 500, RULES)
  }
  return list
}

describe('the line of a list', () => {
  it.each<[string, Progress, string]>([
    ['before its first page', read('acme orders', 0), 'acme orders  waits for its first page'],
    ['before its speed is known', read('acme orders', 2), 'acme orders  page 2 of 40, 50 rows'],
    ['then', read('acme orders', 20), 'acme orders  page 20 of 40, 500 rows, about 10 seconds left'],
    // Nine in the first minute, ten when the second begins, and the other twenty at the pace of the limit.
    ['by its limit', read('acme orders', 1, 10), 'acme orders  page 1 of 40, 25 rows, about 3 minutes left'],
    [
      'that waits',
      { ...read('acme orders', 20), wait: { reason: 'the rate limit', since: 0, until: 70_000 } },
      'acme orders  page 20 of 40, 500 rows, about 60 seconds left, waits 60 seconds: the rate limit',
    ],
    [
      'that another process has',
      { ...read('acme orders', 0), owner: 'process 7' },
      'acme orders  waits for process 7',
    ],
  ])('%s', (_, list, line) => {
    expect(progressLines([list], 10_000)).toEqual([line])
  })

  it('comes before those that have not begun, and at most fifty fit', () => {
    const lists = Array.from({ length: 60 }, (_, index) => read(`list-${index}`, index === 59 ? 20 : 0))

    expect(progressLines(lists, 10_000)[0]).toMatch(/^list-59 /)
    expect(progressLines(lists, 10_000)).toHaveLength(50)
  })
})

const waited = (label: string) => ({ ...read(label, 10, 10), waitedMs: 299_000 })

it('the estimate counts the lists that share a limit', () => {
  const [one, other] = [waited('acme orders'), waited('globex orders')]
  const alone = estimateText(one, [one], 300_000)

  expect([alone, estimateText(one, [one, other], 300_000)]).toEqual([
    '30 more pages, about 3 minutes',
    '30 more pages, about 6 minutes',
  ])
})
