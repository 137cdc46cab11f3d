import { describe, expect, it } from 'vitest'
import { type AdviceFacts, adviceText, advise } from '../../src/report/advice.ts'

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

    expect(Math.round(advice.walk_minutes)).toBe(67)
    expect(advice).toMatchObject({ refresh_every_minutes: 5, refresh_requests: 2, schedule: '0 */6 * * *' })
    expect(advice.refresh_percent).toBeCloseTo(0.67, 2)
    expect(advice.shown.map(({ rows, minutes }) => [rows, Math.round(minutes)])).toEqual([
      [100, 17],
      [400, 33],
      [1600, 66],
      [6400, 133],
      [25_600, 266],
    ])
  })

  it('does not promise five minutes to a hundred organizations on one token', () => {
    const many = { ...ORDERS, lists: Array.from({ length: 100 }, () => ({ rows: 1000, perPage: 25 })) }

    // 200 requests, of 6 a minute.
    expect(advise(many)).toMatchObject({ refresh_every_minutes: 34, refresh_requests: 200 })
  })

  it('says seconds where refreshes are wished more often than once a minute', () => {
    const soon = { ...ORDERS, every: 0.5 }

    expect(adviceText(advise(soon), soon)[1]).toMatch(
      /^refresh: \{ every: 30s, share: 10 \} .*within 30 seconds,/,
    )
    // Two lists take 4 requests, of 6 a minute.
    const two = { ...soon, lists: [...ORDERS.lists, ...ORDERS.lists] }
    expect(adviceText(advise(two), two)[1]).toMatch(
      /^refresh: \{ every: 40s, share: 10 \} .*within 40 seconds,/,
    )
  })

  it('is a day where the share hardly allows a refresh', () => {
    const slow = { ...ORDERS, requestsPerMinute: 0.01 }

    expect(advise(slow)).toMatchObject({ refresh_every_minutes: 1440, shown: [] })
  })

  it.each([
    [100, '*/15 * * * *'],
    [10_000, '0 * * * *'],
    [1_000_000, '0 3 * * 0'],
  ])('for %d rows is the schedule %s, so that walks leave most requests free', (rows, schedule) => {
    expect(advise({ ...ORDERS, lists: [{ rows, perPage: 25 }] }).schedule).toBe(schedule)
  })

  it('is told in sentences', () => {
    expect(adviceText(advise(ORDERS), ORDERS)).toEqual([
      'full walks of 1 list take about 66 minutes at 60 requests a minute; schedule: "0 3 * * *" leaves most of them free',
      'refresh: { every: 5m, share: 10 } shows new rows within 5 minutes, for about 2 requests each time (0.67 % of the limit)',
      'with 10 % of the limit, changes show within 17 minutes among the newest 100 rows, 66 minutes among the newest 1,600 rows, 4 hours among the newest 25,600 rows',
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
    ['one of ours, if none is known', '*/15 * * * *', null, 300],
  ])('names %s', (_title, schedule, betweenWalks, rows) => {
    const facts = { ...ORDERS, betweenWalks, schedule: '* * * * *', lists: [{ rows, perPage: 25 }] }

    expect(adviceText(advise(facts), facts)[0]).toContain(`schedule: "${schedule}"`)
  })

  it('says once what is the same for several bands', () => {
    const advice = { ...advise(ORDERS), shown: [100, 400, 1600].map((rows) => ({ rows, minutes: 5 })) }

    expect(adviceText(advice, ORDERS).at(-1)).toBe(
      'with 10 % of the limit, changes show within 5 minutes among the newest 1,600 rows',
    )
  })

  it('of an empty list, or of none, has no bands', () => {
    expect(advise({ ...ORDERS, lists: [{ rows: 0, perPage: 1 }] }).shown).toEqual([])
    expect(advise({ ...ORDERS, lists: [] }).shown).toEqual([])
  })
})
