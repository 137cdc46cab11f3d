import * as fc from 'fast-check'
import { createTask } from 'node-cron'
import { describe, expect, it } from 'vitest'
import { checkCron } from '../../src/schedule/check-cron.ts'
import { nextFireAfter, periodOf } from '../../src/schedule/cron.ts'
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
          fc.pre(checkCron(expression) === null)
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

const at = (hour: string) => Date.parse(`2026-11-20T${hour}:00Z`)

describe('a search that has an answer from the last one', () => {
  it.each<[string, string, ...[after: string, until: string, fire: string | null][]]>([
    ['of a later end, keeps it', '0 * * * *', ['08:10', '12:00', '09:00'], ['08:20', '11:00', '09:00']],
    ['of an end before it, is none', '0 * * * *', ['08:10', '12:00', '09:00'], ['08:20', '08:59', null]],
    ['of just that end, keeps it', '0 * * * *', ['08:10', '12:00', '09:00'], ['08:10', '09:00', '09:00']],
    ['that is over, finds the next', '0 * * * *', ['08:10', '12:00', '09:00'], ['09:00', '12:00', '10:00']],
    [
      'of a later start, finds the one before',
      '0 * * * *',
      ['08:10', '12:00', '09:00'],
      ['07:10', '12:00', '08:00'],
    ],
    [
      'that found none, finds none within it',
      '0 3 * * *',
      ['08:10', '12:00', null],
      ['09:00', '11:00', null],
    ],
    [
      'that found none, finds one behind it',
      '0 13 * * *',
      ['08:10', '12:00', null],
      ['08:10', '14:00', '13:00'],
    ],
    [
      'that found none, finds one before it',
      '0 8 * * *',
      ['08:10', '12:00', null],
      ['07:10', '12:00', '08:00'],
    ],
  ])('%s', (title, expression, ...searches) => {
    // By blanks another schedule than that of the other rows.
    const own = `${expression}${' '.repeat(title.length)}`

    for (const [after, until, fire] of searches) {
      expect(iso(nextFireAfter(own, 'UTC', at(after), at(until)))).toBe(iso(fire === null ? null : at(fire)))
    }
  })
})
