import { expect, it } from 'vitest'
import { refreshNotes } from '../../src/report/notes.ts'

const listOf = (every: number | null, budget = 'a') => ({
  refresh_budget: budget,
  organization: 'acme',
  collection: 'orders',
  refreshed_every_ms: every === null ? null : every * 60_000,
  refresh_share: every === null ? null : 5.854,
})

it.each([
  { lists: [listOf(null)], notes: [] },
  {
    lists: [listOf(5), listOf(44), listOf(15), listOf(null), listOf(5, 'b')],
    notes: [
      '4 lists of acme share 6 requests a minute for refreshes: newest ends every 5 minutes to 44 minutes, the rest for older pages',
      'acme orders has 6 requests a minute for refreshes: its newest end every 5 minutes, the rest for older pages',
    ],
  },
])('a sentence a token says what its share of requests carries: $notes', ({ lists, notes }) => {
  expect(refreshNotes(lists)).toEqual(notes)
})
