import * as fc from 'fast-check'
import { createTask } from 'node-cron'
import { describe, expect, it } from 'vitest'
import { isCron, nextFireAfter, periodOf } from '../../src/schedule/cron.ts'
import { LONG } from '../helpers/long.ts'
import { anyExpression, anyMoment, anyZone } from './schedules.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const YEAR = 366 * 24 * HOUR

function iso(time: number | null): string | null {
  return time === null ? null : new Date(time).toISOString().replace('.000Z', 'Z')
}

/** The first `count` fire times after a moment. */
function fires(expression: string, timezone: string, after: string, count: number): (string | null)[] {
  const times: (string | null)[] = []
  let time: number | null = Date.parse(after)
  for (let index = 0; index < count && time !== null; index++) {
    time = nextFireAfter(expression, timezone, time, time + YEAR * 9)
    times.push(iso(time))
  }
  return times
}

describe('a cron expression', () => {
  it.each([
    ['*/15 * * * *', true],
    ['1-5,7 */2 * jan-mar mon,wed', true],
    ['0 3 L-3,15W,LW * *', true],
    ['0 0 3 * * monday#2', true],
    ['@daily', true],
    ['hourly', false],
    ['', false],
    ['60 * * * *', false],
    ['*/0 * * * *', false],
    ['0 0 3 * * * 2026', false],
    ['0 0 30 2 *', false],
  ])('%j is one: %s', (text, expected) => {
    expect(isCron(text)).toBe(expected)
  })
})

describe('the next fire time', () => {
  it.each([
    ['of one second of a year', '59 59 23 31 12 *', '2026-12-31T23:59:59Z', '2027-12-31T23:59:59Z'],
    ['of a leap day', '0 0 29 2 *', '2026-11-20T00:00:00Z', '2028-02-29T00:00:00Z'],
    ['of a day that suits both fields', '0 0 13 * 5', '2026-11-20T00:00:00Z', '2027-08-13T00:00:00Z'],
    ['of a word', '@weekly', '2026-11-20T00:00:00Z', '2026-11-22T00:00:00Z'],
  ])('%s (%s)', (_, expression, after, expected) => {
    expect(fires(expression, 'UTC', after, 1)).toEqual([expected])
  })

  it('may be the end of the window, but not its start', () => {
    const noon = Date.parse('2026-11-20T12:00:00Z')

    expect(nextFireAfter('0 12 * * *', 'UTC', noon - 1, noon)).toBe(noon)
    expect(nextFireAfter('0 12 * * *', 'UTC', noon - HOUR, noon - 1)).toBeNull()
    expect(nextFireAfter('0 12 * * *', 'UTC', noon, noon + 24 * HOUR - 1)).toBeNull()
    expect(nextFireAfter('0 12 * * *', 'UTC', noon, noon - HOUR)).toBeNull()
    // Without an end it is more than a year.
    expect(nextFireAfter('0 12 20 11 *', 'UTC', noon)).toBe(Date.parse('2027-11-20T12:00:00Z'))
  })

  it('of a leap day on a Monday can be many years ahead', () => {
    const after = Date.parse('2026-11-20T08:00:00Z')

    expect(iso(nextFireAfter('0 0 29 2 1', 'UTC', after, after + YEAR * 40))).toBe('2044-02-29T00:00:00Z')
  })

  it('throws for a time zone that does not exist', () => {
    expect(() => nextFireAfter('0 0 * * *', 'Europe/Atlantis', 0, 1)).toThrow(RangeError)
  })
})

describe('the period of a schedule', () => {
  it.each([
    ['*/15 * * * *', 15 * MINUTE],
    ['0 3 * * *', 24 * HOUR],
    ['0 0 1 1 *', YEAR],
    // A day and six days in turn.
    ['0 0 * * 1,2', 3.5 * 24 * HOUR],
  ])('is the mean time between two of its fire times, and at most a year: %s', (expression, expected) => {
    expect(periodOf(expression, 'UTC', Date.parse('2026-11-20T12:00:00Z'))).toBe(expected)
  })
})

describe('a day of a zone', () => {
  it.each([
    ['is the day before in UTC', '30 5 21 11 *', 'Pacific/Kiritimati', '2026-11-20T15:30:00Z'],
    ['is the day after in UTC', '30 20 20 11 *', 'Pacific/Pago_Pago', '2026-11-21T07:30:00Z'],
  ])('may begin where it %s', (_, expression, timezone, expected) => {
    expect(fires(expression, timezone, '2026-11-10T00:00:00Z', 1)).toEqual([expected])
  })
})

describe('a time of the night', () => {
  it('does not fire on the day on which the clocks skip it', () => {
    const dayAfter = '2026-03-30T00:30:00Z'

    expect(fires('30 2 * * *', 'Europe/Paris', '2026-03-28T01:30:00Z', 1)).toEqual([dayAfter])
  })

  it('fires twice where the clocks show it twice', () => {
    expect(fires('30 2 * * *', 'Europe/Paris', '2026-10-24T12:00:00Z', 3)).toEqual([
      '2026-10-25T00:30:00Z',
      '2026-10-25T01:30:00Z',
      '2026-10-26T01:30:00Z',
    ])
  })
})

describe('compared with node-cron at every moment', () => {
  it.each([
    ['5 fields', false, MINUTE, 2 * 24 * HOUR],
    ['6 fields', true, 1000, HOUR],
  ])('the next fire time of %s is the first that its matcher accepts', (_, seconds, step, longest) => {
    fc.assert(
      fc.property(
        anyExpression(seconds),
        anyZone(),
        anyMoment(),
        fc.integer({ min: 0, max: longest }),
        (expression, timezone, after, length) => {
          fc.pre(isCron(expression))
          const task = createTask(expression, () => {}, { timezone })
          void task.destroy()

          let expected: number | null = null
          for (let time = (Math.floor(after / step) + 1) * step; time <= after + length; time += step) {
            if (task.match(new Date(time))) {
              expected = time
              break
            }
          }

          expect(iso(nextFireAfter(expression, timezone, after, after + length))).toBe(iso(expected))
        },
      ),
      { numRuns: LONG ? 150 : 50 },
    )
  })
})
