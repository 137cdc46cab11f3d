import * as fc from 'fast-check'
import { validate } from 'node-cron'
import { describe, expect, it } from 'vitest'
import { checkCron, isPlain } from '../../src/schedule/check-cron.ts'
import { findCronFault } from '../../src/schedule/cron.ts'
import { anyExpression } from './schedules.ts'

describe('a valid cron expression', () => {
  it.each([
    ['*/15 * * * *'],
    ['1-5,7 */2 * jan-mar mon,wed'],
    ['0 22-2 * * fri-mon'],
    ['0 3 L-3,15W,LW * *'],
    ['0 3 * * 5L'],
    ['0 3 * * monday#2'],
    ['0 0 29 2 *'],
    ['0-59 0-23 1-31 jan 0-7'],
  ])('has no fault: %s', (expression) => {
    expect(checkCron(expression)).toBeNull()
  })
})

describe('the fault of a cron expression', () => {
  it.each([
    ['', 'it has no fields, not 5 or 6'],
    ['*/15 * * * *\n', 'it has a character that means nothing there'],
    ['*/15 * * * *\u00a0', 'it has a character that means nothing there'],
    ['hourly', 'it has 1 field, not 5 or 6'],
    ['0 0 3 * * * 2026', 'it has 7 fields, not 5 or 6'],
    ['60 * * * *', 'its minute field cannot be "60"'],
    ['0 0 * 13 *', 'its month field cannot be "13"'],
    ['*/0 * * * *', 'its minute field cannot be "*/0"'],
    ['1,,2 * * * *', 'its minute field cannot be "1,,2"'],
    ['0\u001b * * * *', 'its minute field cannot be "0\\u{1b}"'],
    [`${'x'.repeat(99)}1 * * * *`, `its minute field cannot be "${'x'.repeat(60)}..."`],
  ])('%j: %s', (expression, fault) => {
    expect(checkCron(expression)).toBe(fault)
  })

  it.each([
    ['5* * * * *', 'its minute field cannot be "5*"'],
    ['1,5* * * * *', 'its minute field cannot be "1,5*"'],
    ['60-5 * * * *', 'its minute field cannot be "60-5"'],
    ['0 0 * 10-0 *', 'its month field cannot be "10-0"'],
    ['0 0 1 jan2 *', 'its month field cannot be "jan2"'],
    ['0 0 * * 1*', 'its day of week field cannot be "1*"'],
  ])('is reported where node-cron would read another schedule: %s', (expression, fault) => {
    expect(validate(expression)).toBe(true)

    expect(checkCron(expression)).toBe(fault)
  })

  it.each([['0 0 30 2 *'], ['0 0 30W 2 *'], ['0 0 0 31 6 *']])(
    'is reported when it can never fire: %s',
    (expression) => {
      expect(checkCron(expression)).toBe('no such day exists, so it would never fire')
    },
  )
})

describe('a cron expression that is right at first sight', () => {
  it.each([
    ['0 0 29 2 *', true],
    ['  0   3 1-7/2,30 * 1-5  ', true],
    ['0 0 30 2 *', false],
    ['0 3 * jan *', false],
    ['0 3 L * *', false],
    ['5/10 * * * *', false],
    ['*/0 * * * *', false],
    ['60 * * * *', false],
    ['* * * * * * *', false],
    ['@daily', false],
  ])('%j: %j', (expression, isRight) => {
    expect(isPlain(expression)).toBe(isRight)
  })

  it('has no fault for node-cron either', () => {
    const anyText = fc.stringMatching(/^[0-9*/,\- ]{0,14}$/)
    fc.assert(
      fc.property(fc.oneof(anyExpression(false), anyExpression(true), anyText), (expression) => {
        fc.pre(isPlain(expression))

        expect(findCronFault(expression)).toBeNull()
      }),
    )
  })
})
