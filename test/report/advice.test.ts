import { describe, expect, it } from 'vitest'
import { type AdviceFacts, refreshText, walkAdvice } from '../../src/report/advice.ts'

/** 100,000 orders at 60 requests a minute, walked each night. */
const ORDERS: AdviceFacts = {
  lists: 1,
  requests: 4000,
  walksMs: 66 * 60_000,
  perMinute: 60,
  configured: { schedule: '0 3 * * *', minutes: 1440 },
  refresh: { share: 10, every: 300_000 },
}

describe('the advice', () => {
  it('is told in sentences', () => {
    expect(walkAdvice(ORDERS)).toEqual({
      isTight: false,
      schedule: '0 3 * * *',
      walks:
        'full walks of 1 list take about 66 minutes at 60 requests a minute; schedule: "0 3 * * *" leaves most requests free',
      refreshes:
        'refresh: { every: 5m, share: 10 } reads the newest end of the busiest list every 5 minutes, other lists less often, the less often the fewer new rows they have, and older pages with the rest of 10 %',
    })
  })

  it('names no time for walks whose requests leave at once', () => {
    expect(walkAdvice({ ...ORDERS, walksMs: 0 }).walks).toBe(
      'full walks of 1 list take no more requests than leave at once, at 60 a minute; schedule: "0 3 * * *" leaves most requests free',
    )
  })

  it.each([
    [4, '*/15 * * * *'],
    [400, '0 * * * *'],
    [4000, '0 */6 * * *'],
    [40_000, '0 3 * * 0'],
  ])('for %d requests proposes %s where the configured one leaves too few', (requests, schedule) => {
    const configured = { schedule: '* * * * *', minutes: 0.1 }

    expect(walkAdvice({ ...ORDERS, requests, configured }).schedule).toBe(schedule)
    expect(walkAdvice({ ...ORDERS, requests, configured: null }).schedule).toBe(schedule)
  })

  it('warns where walks cannot end before their time comes again', () => {
    const configured = { schedule: '0 * * * *', minutes: 60 }

    expect(walkAdvice({ ...ORDERS, configured }).isTight).toBe(true)
    expect(walkAdvice({ ...ORDERS, requests: 3000, configured }).isTight).toBe(false)
  })
})

const listOf = (every: number | null, rows: number) => ({
  organization: 'acme',
  collection: 'orders',
  refreshed_every_ms: every === null ? null : every * 60_000,
  rows,
  refresh_share: every === null ? null : 5.854,
})

describe('how lists share what refreshes may use', () => {
  it.each([
    { lists: [listOf(null, 100)], text: [] },
    {
      lists: [listOf(5, 100_000)],
      text: [
        'acme orders has 6 requests a minute for refreshes: new rows are looked for every 5 minutes; older pages get 93 % of it',
      ],
    },
    {
      lists: [{ ...listOf(5, 100_000), refresh_share: 23.4 }],
      text: [expect.stringContaining('acme orders has 23 requests a minute for refreshes: ')],
    },
    {
      // A short list takes five requests.
      lists: [
        listOf(5, 100_000),
        listOf(60, 100),
        ...Array.from({ length: 18 }, () => listOf(15, 10_000)),
        listOf(null, 1),
      ],
      text: [
        '21 lists of acme share 6 requests a minute for refreshes: new rows of the busiest are looked for every 5 minutes, of the quietest every 60 minutes; older pages get half of it',
      ],
    },
    {
      lists: ['acme', 'acme', 'globex', 'globex'].map((organization) => ({
        ...listOf(1, 10_000),
        organization,
      })),
      text: [
        '4 lists of 2 organizations share 6 requests a minute for refreshes: new rows are looked for every 60 seconds; older pages get 0 % of it',
      ],
    },
  ])('is told in a sentence: $text', ({ lists, text }) => {
    expect(refreshText(lists)).toEqual(text)
  })
})
