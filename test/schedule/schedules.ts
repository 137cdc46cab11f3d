import * as fc from 'fast-check'

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const WEEKDAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']

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

export function anyZone(): fc.Arbitrary<string> {
  return fc.constantFrom(
    'UTC',
    'Europe/Paris',
    'America/New_York',
    'Asia/Kathmandu',
    'America/St_Johns',
    'Australia/Lord_Howe',
    'Pacific/Chatham',
    'Pacific/Kiritimati',
    'Pacific/Pago_Pago',
  )
}

/** Epoch milliseconds; every other moment is close to a change of the clocks. */
export function anyMoment(): fc.Arbitrary<number> {
  const nearChange = fc
    .tuple(fc.constantFrom(...CHANGES), fc.integer({ min: -5 * 3_600_000, max: 3 * 3_600_000 }))
    .map(([change, distance]) => change + distance)
  return fc.oneof(nearChange, fc.integer({ min: Date.UTC(2024, 0, 1), max: Date.UTC(2032, 0, 1) }))
}

/** Cron expressions in most of their forms; some can never fire. */
export function anyExpression(seconds: boolean): fc.Arbitrary<string> {
  const fields = [
    field(0, 59),
    field(0, 23),
    mostlyAll(fc.oneof(field(1, 31), fc.constantFrom('L', 'L-2', 'LW', '15W'))),
    mostlyAll(fc.oneof(field(1, 12), fc.constantFrom(...MONTHS))),
    mostlyAll(fc.oneof(field(0, 7), fc.constantFrom(...WEEKDAYS, '5L', '1#2'))),
  ]
  return fc.tuple(...(seconds ? [field(0, 59), ...fields] : fields)).map((texts) => texts.join(' '))
}

function mostlyAll(some: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.oneof({ arbitrary: fc.constant('*'), weight: 3 }, { arbitrary: some, weight: 1 })
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
