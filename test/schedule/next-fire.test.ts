import * as fc from 'fast-check'
import { createTask } from 'node-cron'
import { describe, expect, it } from 'vitest'
import { checkCron, coarserExpressions, nextFireAfter } from '../../src/schedule/cron.ts'
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
    ['of the default', '*/15 * * * *', '2026-11-20T08:07:30Z', '2026-11-20T08:15:00Z'],
    ['comes after a fire time', '*/15 * * * *', '2026-11-20T08:15:00Z', '2026-11-20T08:30:00Z'],
    ['comes a millisecond later', '*/15 * * * *', '2026-11-20T08:14:59.999Z', '2026-11-20T08:15:00Z'],
    ['of six fields', '*/20 * * * * *', '2026-11-20T08:00:21.400Z', '2026-11-20T08:00:40Z'],
    ['of one second of a day', '59 59 23 * * *', '2026-11-20T08:00:00Z', '2026-11-20T23:59:59Z'],
    ['of one second of a year', '59 59 23 31 12 *', '2026-12-31T23:59:59Z', '2027-12-31T23:59:59Z'],
    ['of a list', '5,20 3,16 * * *', '2026-11-20T03:20:00Z', '2026-11-20T16:05:00Z'],
    ['of a range', '0 9-17 * * *', '2026-11-20T17:00:00Z', '2026-11-21T09:00:00Z'],
    ['of a range past midnight', '0 22-2 * * *', '2026-11-20T23:30:00Z', '2026-11-21T00:00:00Z'],
    ['of a step in a range', '10-50/20 * * * *', '2026-11-20T08:30:00Z', '2026-11-20T08:50:00Z'],
    ['of weekdays by name', '0 6 * * mon-fri', '2026-11-20T06:00:00Z', '2026-11-23T06:00:00Z'],
    ['of a month by name', '0 0 1 jan,jul *', '2026-11-20T00:00:00Z', '2027-01-01T00:00:00Z'],
    ['of Sunday as 7', '0 0 * * 7', '2026-11-20T00:00:00Z', '2026-11-22T00:00:00Z'],
    ['of the last day of a month', '0 0 L * *', '2027-02-01T00:00:00Z', '2027-02-28T00:00:00Z'],
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
  })

  it.each([
    ['Pacific/Kiritimati', '2026-12-31T10:00:00Z'],
    ['Pacific/Pago_Pago', '2027-01-01T11:00:00Z'],
    ['Asia/Kathmandu', '2026-12-31T18:15:00Z'],
    ['Pacific/Chatham', '2026-12-31T10:15:00Z'],
  ])('of a new year is that of its zone: %s', (timezone, expected) => {
    expect(fires('0 0 1 1 *', timezone, '2026-11-20T00:00:00Z', 1)).toEqual([expected])
  })

  it('of an evening is that of its zone, when UTC has the next day', () => {
    expect(fires('30 23 31 12 *', 'Pacific/Pago_Pago', '2026-11-20T00:00:00Z', 1)).toEqual([
      '2027-01-01T10:30:00Z',
    ])
  })

  it('of a leap day on a Monday can be many years ahead', () => {
    const after = Date.parse('2026-11-20T08:00:00Z')

    expect(iso(nextFireAfter('0 0 29 2 1', 'UTC', after, after + YEAR * 40))).toBe('2044-02-29T00:00:00Z')
  })

  it('throws for a time zone that does not exist', () => {
    expect(() => nextFireAfter('0 0 * * *', 'Europe/Atlantis', 0, 1)).toThrow(RangeError)
  })
})

describe('when the clocks are put forward', () => {
  it.each([
    ['Europe/Paris', '2026-03-29T00:30:00Z', ['00:45', '01:00', '01:15']],
    ['America/New_York', '2026-03-08T06:30:00Z', ['06:45', '07:00', '07:15']],
  ])('what fires each quarter continues: %s', (timezone, after, expected) => {
    const times = fires('*/15 * * * *', timezone, after, 3)

    expect(times.map((time) => time?.slice(11, 16))).toEqual(expected)
  })

  it.each([
    ['Europe/Paris', '2026-03-28T01:30:00Z', '2026-03-30T00:30:00Z'],
    ['America/New_York', '2026-03-07T07:30:00Z', '2026-03-09T06:30:00Z'],
  ])('half past two is left out on that day: %s', (timezone, dayBefore, dayAfter) => {
    expect(fires('30 2 * * *', timezone, dayBefore, 1)).toEqual([dayAfter])
  })

  it.each([
    ['Europe/Paris', '2026-03-28T02:00:00Z', '2026-03-29T01:00:00Z'],
    ['America/New_York', '2026-03-07T08:00:00Z', '2026-03-08T07:00:00Z'],
  ])('three o’clock is 23 hours after three o’clock: %s', (timezone, dayBefore, day) => {
    expect(fires('0 3 * * *', timezone, dayBefore, 1)).toEqual([day])
  })
})

describe('when the clocks are put back', () => {
  it.each([
    ['Europe/Paris', '2026-10-24T23:45:00Z', ['00:00', '00:30', '01:00', '01:30', '02:00']],
    ['America/New_York', '2026-11-01T04:45:00Z', ['05:00', '05:30', '06:00', '06:30', '07:00']],
  ])('what fires each half hour continues through both hours: %s', (timezone, after, expected) => {
    const times = fires('*/30 * * * *', timezone, after, 5)

    expect(times.map((time) => time?.slice(11, 16))).toEqual(expected)
  })

  it.each([
    ['Europe/Paris', '30 2 * * *', '2026-10-24T12:00:00Z', ['25T00:30', '25T01:30', '26T01:30']],
    ['America/New_York', '30 1 * * *', '2026-10-31T12:00:00Z', ['01T05:30', '01T06:30', '02T06:30']],
  ])('a time that comes twice fires twice: %s', (timezone, expression, after, expected) => {
    const times = fires(expression, timezone, after, 3)

    expect(times.map((time) => time?.slice(8, 16))).toEqual(expected)
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

it('the coarser forms of an expression leave its finer fields open', () => {
  const fields = {
    second: [0],
    minute: [5, 20],
    hour: [3],
    dayOfMonth: ['L', '15W'],
    month: [1, 2],
    dayOfWeek: [0, '5L'],
  }

  expect(coarserExpressions(fields)).toEqual({
    day: '* * * L,15W 1,2 0,5L',
    hour: '* * 3 L,15W 1,2 0,5L',
    minute: '* 5,20 3 L,15W 1,2 0,5L',
  })
})
