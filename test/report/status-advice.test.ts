import { describe, expect, it } from 'vitest'
import { type AdvisedList, statusAdvice } from '../../src/report/advice.ts'

const MINUTE = 60_000

const LIST: AdvisedList = {
  organization: 'acme',
  collection: 'orders',
  as_of: '2026-11-01T03:00:00.000Z',
  last_complete_at: '2026-11-01T04:07:00.000Z',
  alarm_since: null,
  changed_since_off: null,
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

  it('is a list that is read at once, since far more of it changed than usual', () => {
    expect(statusAdvice([LIST, { ...LIST, alarm_since: '2026-11-01T03:04:00.000Z' }])).toEqual([
      'acme orders: many more changes than usual in older pages: reading the whole list now',
    ])
  })

  it('is an API that ignores what it is asked for, once', () => {
    const off = { ...LIST, changed_since_off: 'it gave rows of the past' }

    expect(statusAdvice([LIST, off])).toEqual([
      'changedSince of acme orders is off: it gave rows of the past',
    ])
    expect(statusAdvice([off, { ...off, organization: 'globex' }, off])).toEqual([
      'changedSince of acme orders, and of 2 more lists, is off: it gave rows of the past',
    ])
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
