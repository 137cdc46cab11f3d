import { describe, expect, it } from 'vitest'
import { refreshText } from '../../src/report/refreshes.ts'

const listOf = (every: number | null) => ({
  organization: 'acme',
  collection: 'orders',
  refreshed_every_ms: every === null ? null : every * 60_000,
  refresh_share: every === null ? null : 5.854,
})

describe('what the part of a rate limit carries that refreshes may use', () => {
  it.each([
    { lists: [], text: [] },
    { lists: [listOf(null)], text: [] },
    {
      lists: [listOf(5)],
      text: [
        'acme orders has 6 requests a minute for refreshes: its newest end every 5 minutes, the rest for older pages',
      ],
    },
    {
      lists: [{ ...listOf(5), refresh_share: 23.4 }],
      text: [expect.stringContaining('acme orders has 23 requests a minute for refreshes: ')],
    },
    {
      lists: [listOf(5), listOf(44), listOf(15), listOf(null)],
      text: [
        '4 lists share 6 requests a minute for refreshes: newest ends every 5 minutes to 44 minutes, the rest for older pages',
      ],
    },
  ])('is told in a sentence: $text', ({ lists, text }) => {
    expect(refreshText(lists)).toEqual(text)
  })
})
