import { describe, expect, it } from 'vitest'
import { publishDueAt } from '../../src/schedule/publish-due.ts'

const NOW = 1_000_000
const EVERY = 300_000

describe('the next publication', () => {
  it.each<[string, [news: number | null, published: number | null, attempted: number | null], number | null]>(
    [
      ['is not due without news', [null, 0, 0], null],
      ['is due at once where nothing was ever published', [NOW, null, null], NOW],
      ['is due at once after a long time', [NOW, NOW - EVERY, NOW - EVERY], NOW],
      ['waits until the last one is old enough', [NOW, NOW - 100_000, null], NOW + 200_000],
      ['is not due where the file shows a moment after the news', [NOW - EVERY, NOW - 1, null], null],
      ['comes at the latest so long after the news', [NOW, NOW, null], NOW + EVERY],
      ['waits after a failed attempt too', [NOW, null, NOW - 1], NOW - 1 + EVERY],
      ['does not wait for a time that the clock has not reached', [NOW, NOW + 1, null], NOW],
    ],
  )('%s', (_what, [newsAt, publishedAt, attemptedAt], due) => {
    expect(publishDueAt({ newsAt, publishedAt, attemptedAt }, EVERY, NOW)).toBe(due)
  })
})
