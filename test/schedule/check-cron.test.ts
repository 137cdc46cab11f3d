import * as fc from 'fast-check'
import { validate } from 'node-cron'
import { describe, expect, it } from 'vitest'
import { checkCron, findCronFault, isPlain } from '../../src/schedule/cron.ts'
import { anyExpression } from './schedules.ts'

describe('a valid cron expression', () => {
  it.each([
    ['* * * * *'],
    ['*/15 * * * *'],
    ['*/10 * * * * *'],
    ['0 0 3 * * *'],
    ['  0   3 * * *  '],
    ['1-5,7 */2 * jan-mar mon,wed'],
    ['0 22-2 * * fri-mon'],
    ['10-50/20 3 * * 7'],
    ['0 3 ? * ?'],
    ['0 3 L * *'],
    ['0 3 L-3,15W,LW * *'],
    ['0 3 * * 5L'],
    ['0 3 * * monday#2'],
    ['0 3 * January Sunday'],
    ['0 0 29 2 *'],
    ['0 0 29 2 1'],
    ['0 0 31 1-4 *'],
    ['@daily'],
  ])('has no fault: %s', (expression) => {
    expect(checkCron(expression)).toBeNull()
  })
})

describe('the fault of a cron expression', () => {
  it.each([
    ['', 'it has no fields, not 5 or 6'],
    ['*/15 * * * *\n', 'it has a character that means nothing there'],
    ['*/15 * * * *\r', 'it has a character that means nothing there'],
    ['\t*/15 * * * *', 'it has a character that means nothing there'],
    ['*/15 * * * *\u00a0', 'it has a character that means nothing there'],
    ['\ufeff*/15 * * * *', 'it has a character that means nothing there'],
    ['   ', 'it has no fields, not 5 or 6'],
    ['hourly', 'it has 1 field, not 5 or 6'],
    ['0 3 * *', 'it has 4 fields, not 5 or 6'],
    ['0 0 3 * * * 2026', 'it has 7 fields, not 5 or 6'],
    ['@often', 'it has a character that means nothing there'],
    ['60 * * * *', 'its minute field cannot be "60"'],
    ['* 24 * * *', 'its hour field cannot be "24"'],
    ['0 0 0 1 *', 'its day of month field cannot be "0"'],
    ['0 0 * 13 *', 'its month field cannot be "13"'],
    ['0 0 * monday *', 'its month field cannot be "monday"'],
    ['0 0 * * 8', 'its day of week field cannot be "8"'],
    ['0 0 * * january', 'its day of week field cannot be "january"'],
    ['60 * * * * *', 'its second field cannot be "60"'],
    ['*/0 * * * *', 'its minute field cannot be "*/0"'],
    ['1,,2 * * * *', 'its minute field cannot be "1,,2"'],
    ['1.5 * * * *', 'its minute field cannot be "1.5"'],
    ['-5 * * * *', 'its minute field cannot be "-5"'],
    ['0 0 32W * *', 'its day of month field cannot be "32W"'],
    ['0\u001b * * * *', 'its minute field cannot be "0\\u{1b}"'],
    [`${'x'.repeat(99)}1 * * * *`, `its minute field cannot be "${'x'.repeat(60)}..."`],
  ])('%j: %s', (expression, fault) => {
    expect(checkCron(expression)).toBe(fault)
  })

  it.each([
    ['5* * * * *', 'its minute field cannot be "5*"'],
    ['60-5 * * * *', 'its minute field cannot be "60-5"'],
    ['0 0 * 10-0 *', 'its month field cannot be "10-0"'],
    ['0 0 1 jan2 *', 'its month field cannot be "jan2"'],
    ['0 0 * * 1*', 'its day of week field cannot be "1*"'],
  ])('is reported where node-cron would read another schedule: %s', (expression, fault) => {
    expect(validate(expression)).toBe(true)

    expect(checkCron(expression)).toBe(fault)
  })

  it.each([
    ['0 0 30 2 *'],
    ['0 0 31 4,6,9,11 *'],
    ['0 0 30W 2 *'],
    ['0 0 L-30 2 *'],
    ['0 0 1 * 1#2'],
    ['0 0 0 31 6 *'],
  ])('is reported when it can never fire: %s', (expression) => {
    expect(checkCron(expression)).toBe('no such day exists, so it would never fire')
  })
})

describe('a cron expression that is right at first sight', () => {
  it.each([
    ['*/15 * * * *', true],
    ['0 0 29 2 *', true],
    ['  0   3 1-7/2,30 * 1-5  ', true],
    ['*/10 59 23 31,29 12 7', true],
    ['0 0 30 2 *', false],
    ['0 0 31 * *', false],
    ['0 3 * jan *', false],
    ['0 3 L * *', false],
    ['0 22-2 * * *', false],
    ['5/10 * * * *', false],
    ['*/0 * * * *', false],
    ['60 * * * *', false],
    ['0 24 * * *', false],
    ['0 0 0 1 *', false],
    ['0 0 1 13 *', false],
    ['0 0 * * 8', false],
    ['0 0 * * 5-8', false],
    ['*,* 1,, * * *', false],
    ['@daily', false],
    ['* * * *', false],
    ['* * * * * * *', false],
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
