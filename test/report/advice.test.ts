import { describe, expect, it } from 'vitest'
import { type AdviceFacts, adviceText, advise } from '../../src/report/advice.ts'
import { refreshText } from '../../src/report/refresh-text.ts'

/** 100,000 orders at 60 requests a minute, walked each day. */
const ORDERS: AdviceFacts = {
  lists: [{ rows: 100_000, perPage: 25 }],
  requestsPerMinute: 60,
  walksMs: 66 * 60_000,
  sharePercent: 10,
  every: 5,
  betweenWalks: 1440,
  schedule: '0 3 * * *',
}

describe('the advice', () => {
  it('is what was measured for one large list', () => {
    const advice = advise(ORDERS)

    expect(Math.round(advice.walkMinutes)).toBe(67)
    expect(advice).toMatchObject({ schedule: '0 */6 * * *' })
  })

  it.each([
    [100, '*/15 * * * *'],
    [1_000_000, '0 3 * * 0'],
  ])('for %d rows is the schedule %s, so that walks leave most requests free', (rows, schedule) => {
    expect(advise({ ...ORDERS, lists: [{ rows, perPage: 25 }] }).schedule).toBe(schedule)
  })

  it('is told in sentences', () => {
    expect(adviceText(advise(ORDERS), ORDERS)).toEqual([
      'full walks of 1 list take about 66 minutes at 60 requests a minute; schedule: "0 3 * * *" leaves most of them free',
      'refresh: { every: 5m, share: 10 } reads the newest end of the busiest list every 5 minutes, others as often as their new rows are worth the requests, and older pages with what is left of 10 %',
    ])
  })

  it('names no time for walks whose requests leave at once', () => {
    expect(adviceText(advise(ORDERS), { ...ORDERS, walksMs: 0 })[0]).toBe(
      'full walks of 1 list take no more requests than leave at once, at 60 a minute; schedule: "0 3 * * *" leaves most of them free',
    )
  })

  it.each([
    ['the configured schedule, if it leaves enough', '* * * * *', 1, 300],
    ['one that leaves enough, if the configured one does not', '*/15 * * * *', 1, 1000],
  ])('names %s', (_title, schedule, betweenWalks, rows) => {
    const facts = { ...ORDERS, betweenWalks, schedule: '* * * * *', lists: [{ rows, perPage: 25 }] }

    expect(adviceText(advise(facts), facts)[0]).toContain(`schedule: "${schedule}"`)
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
