import { describe, expect, it } from 'vitest'
import { type AdvisedList, statusAdvice } from '../../src/report/advice.ts'

const MINUTE = 60_000

const LIST: AdvisedList = {
  organization: 'acme',
  collection: 'orders',
  as_of: '2026-11-01T03:00:00.000Z',
  last_complete_at: '2026-11-01T04:07:00.000Z',
  walkEvery: () => 1440 * MINUTE,
  isRefreshed: true,
}

describe('what the configuration asks for, and the rate limit does not carry', () => {
  it.each([
    { lists: [] },
    { lists: [LIST] },
    { lists: [{ ...LIST, as_of: null, last_complete_at: null, walkEvery: () => MINUTE }] },
    { lists: [{ ...LIST, last_complete_at: '2026-11-01T03:04:00.000Z', walkEvery: () => MINUTE }] },
    { lists: [{ ...LIST, isRefreshed: false }] },
  ])('is nothing: $lists', ({ lists }) => {
    expect(statusAdvice(lists)).toEqual([])
  })

  it.each([
    { isRefreshed: true, end: ' free, and refreshes show new rows meanwhile' },
    { isRefreshed: false, end: ' free' },
  ])('are full walks that begin again before they can end: $end', ({ isRefreshed, end }) => {
    expect(statusAdvice([LIST, { ...LIST, walkEvery: () => 15 * MINUTE, isRefreshed }])).toEqual([
      `the last full walk of acme orders took 67 minutes, and one is due every 15 minutes: schedule: "0 */6 * * *" leaves most of the rate limit${end}`,
    ])
  })
})
