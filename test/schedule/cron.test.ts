import * as fc from 'fast-check'
import { createTask } from 'node-cron'
import { expect, it } from 'vitest'
import { isCron, nextFireAfter } from '../../src/schedule/cron.ts'
import { LONG } from '../helpers/long.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

function iso(time: number | null): string | null {
  return time === null ? null : new Date(time).toISOString().replace('.000Z', 'Z')
}

it('a cron expression has 5 or 6 fields, or is a word like @daily, and some day its time comes', () => {
  const fit = '*/15 * * * *|1-5,7 */2 * jan-mar mon,wed|0 3 L-3,15W,LW * *|0 0 3 * * monday#2|@daily'
  const unfit = 'hourly||60 * * * *|*/0 * * * *|0 0 3 * * * 2026|0 0 30 2 *'

  expect(fit.split('|').filter((text) => !isCron(text))).toEqual([])
  expect(unfit.split('|').filter(isCron)).toEqual([])
})

it.each([
  ['a second of a year', '59 59 23 31 12 *', 'UTC', '2026-12-31T23:59:59Z', '2027-12-31T23:59:59Z'],
  ['a day of the week', '0 0 13 * 5', 'UTC', '2026-11-20T00:00:00Z', '2026-11-27T00:00:00Z'],
  [
    'a day that suits both, where one is a step',
    '0 0 */2 * 5',
    'UTC',
    '2026-11-21T00:00:00Z',
    '2026-11-27T00:00:00Z',
  ],
  ['beside it a day of the month', '0 0 13 * 5', 'UTC', '2026-12-11T00:00:00Z', '2026-12-13T00:00:00Z'],
  ['a word', '@weekly', 'UTC', '2026-11-20T00:00:00Z', '2026-11-22T00:00:00Z'],
  ['a leap day years ahead', '0 0 29 2 *', 'UTC', '2028-03-01T00:00:00Z', '2032-02-29T00:00:00Z'],
  ['a day before', '30 5 21 11 *', 'Pacific/Kiritimati', '2026-11-10T00:00:00Z', '2026-11-20T15:30:00Z'],
  ['a day after', '30 20 20 11 *', 'Pacific/Pago_Pago', '2026-11-10T00:00:00Z', '2026-11-21T07:30:00Z'],
  ['a skipped hour', '30 2 * * *', 'Europe/Paris', '2026-03-28T01:30:00Z', '2026-03-30T00:30:00Z'],
  ['an hour that comes twice', '30 2 * * *', 'Europe/Paris', '2026-10-24T12:00:00Z', '2026-10-25T00:30:00Z'],
  ['the second of them', '30 2 * * *', 'Europe/Paris', '2026-10-25T00:30:00Z', '2026-10-25T01:30:00Z'],
])('the next fire time may be %s: %s', (_, expression, timezone, after, expected) => {
  expect(iso(nextFireAfter(expression, timezone, Date.parse(after)))).toBe(expected)
})

it('the next fire time may be the end of the window, but not its start', () => {
  const noon = Date.parse('2026-11-20T12:00:00Z')
  const windows = [
    [noon - 1, noon],
    [noon - HOUR, noon - 1],
    [noon, noon + 24 * HOUR - 1],
  ] as const

  expect(windows.map(([after, until]) => nextFireAfter('0 12 * * *', 'UTC', after, until))).toEqual([
    noon,
    null,
    null,
  ])
})

/** Changes of the clocks, which random days rarely hit. */
const CHANGES = [
  '2026-03-29T01:00:00Z', // Europe
  '2026-10-25T01:00:00Z',
  '2026-03-08T07:00:00Z', // New York
  '2026-11-01T06:00:00Z',
  '2026-04-04T15:00:00Z', // Lord Howe, by half an hour
  '2026-10-03T15:30:00Z',
  '2026-04-04T14:00:00Z', // Chatham
  '2026-09-26T14:00:00Z',
].map((text) => Date.parse(text))

const ZONES =
  'UTC Europe/Paris America/New_York Asia/Kathmandu America/St_Johns Australia/Lord_Howe Pacific/Chatham Pacific/Kiritimati Pacific/Pago_Pago'

/** Epoch milliseconds; every other moment is close to a change of the clocks. */
function anyMoment(): fc.Arbitrary<number> {
  const nearChange = fc
    .tuple(fc.constantFrom(...CHANGES), fc.integer({ min: -5 * 3_600_000, max: 3 * 3_600_000 }))
    .map(([change, distance]) => change + distance)
  return fc.oneof(nearChange, fc.integer({ min: Date.UTC(2024, 0, 1), max: Date.UTC(2032, 0, 1) }))
}

/** Cron expressions in most of their forms; some can never fire. */
function anyExpression(seconds: boolean): fc.Arbitrary<string> {
  const anyMonth = mostlyAll(field(1, 12), 'jan', 'dec')
  const fields = [
    field(0, 59),
    field(0, 23),
    // Where both say a day, node-cron wants both.
    fc.oneof(
      fc.tuple(mostlyAll(field(1, 31), 'L', 'L-2', 'LW', '15W'), anyMonth, fc.constant('*')),
      fc.tuple(fc.constant('*'), anyMonth, mostlyAll(field(0, 7), 'sun', '5L', '1#2')),
    ),
  ]
  return fc.tuple(...(seconds ? [field(0, 59), ...fields] : fields)).map((texts) => texts.flat().join(' '))
}

function mostlyAll(some: fc.Arbitrary<string>, ...words: string[]): fc.Arbitrary<string> {
  const all = { arbitrary: fc.constant('*'), weight: 3 }
  return fc.oneof(all, { arbitrary: fc.oneof(some, fc.constantFrom(...words)), weight: 1 })
}

function field(least: number, most: number): fc.Arbitrary<string> {
  const value = fc.integer({ min: least, max: most })
  const step = fc.integer({ min: 1, max: most })
  return fc.oneof(
    fc.constant('*'),
    value.map(String),
    fc.array(value, { minLength: 1, maxLength: 4 }).map((values) => values.join()),
    fc.tuple(value, value).map(([first, last]) => `${first}-${last}`),
    fc.tuple(value, value, step).map(([first, last, by]) => `${first}-${last}/${by}`),
    step.map((by) => `*/${by}`),
  )
}

it.each([
  ['5 fields', false, MINUTE, 2 * 24 * HOUR],
  ['6 fields', true, 1000, HOUR],
])('the next fire time of %s is the first moment that node-cron accepts', (_, seconds, step, longest) => {
  const length = fc.integer({ min: 0, max: longest })
  fc.assert(
    fc.property(
      anyExpression(seconds),
      fc.constantFrom(...ZONES.split(' ')),
      anyMoment(),
      length,
      (expression, timezone, after, ms) => {
        fc.pre(isCron(expression))
        const task = createTask(expression, () => {}, { timezone })
        void task.destroy()
        let expected: number | null = (Math.floor(after / step) + 1) * step
        while (expected !== null && !task.match(new Date(expected)))
          expected = expected + step > after + ms ? null : expected + step
        if (expected !== null && expected > after + ms) expected = null

        expect(iso(nextFireAfter(expression, timezone, after, after + ms))).toBe(iso(expected))
      },
    ),
    { numRuns: LONG ? 150 : 50 },
  )
})
