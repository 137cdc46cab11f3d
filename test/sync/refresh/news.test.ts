import { expect, it } from 'vitest'
import type { RefreshRow } from '../../../src/sync/refresh/end-reading.ts'
import { NO_NEWS, noteAdded } from '../../../src/sync/refresh/news.ts'

it('of an answer that the reading does not rest on, the rows that it added count, and nothing else', () => {
  const [at, before] = [2, 1]
  const rows = [at, before, null].map((firstAt): RefreshRow => {
    return { seen: firstAt === null ? null : { firstAt, changedAt: at }, metIn: null }
  })
  const news = { ...NO_NEWS, added: 4 }

  expect(noteAdded(news, rows, at)).toEqual({ ...news, added: 5 })
})
