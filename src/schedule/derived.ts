/** The values of a cron expression's fields, as they were parsed; `L`, `15W` and the like stay text. */
export type CronFields = {
  second: readonly number[]
  minute: readonly number[]
  hour: readonly number[]
  dayOfMonth: readonly (number | string)[]
  month: readonly number[]
  dayOfWeek: readonly (number | string)[]
}

/** Cron expressions for the whole days, hours, minutes and for the seconds that a schedule lies in. */
export function coarserExpressions(fields: CronFields) {
  const day = `${fields.dayOfMonth.join()} ${fields.month.join()} ${fields.dayOfWeek.join()}`
  const hour = `${fields.hour.join()} ${day}`
  const minute = `${fields.minute.join()} ${hour}`
  return {
    day: `* * * ${day}`,
    hour: `* * ${hour}`,
    minute: `* ${minute}`,
    second: `${fields.second.join()} ${minute}`,
  }
}

/**
 * A cron expression for UTC, of every moment at which a schedule can fire in some zone: clocks differ from UTC by a
 * multiple of a quarter of an hour, so that only hours and days are left open.
 */
export function wakeExpression({ second, minute }: Pick<CronFields, 'second' | 'minute'>): string {
  const minutes = new Set(minute.flatMap((value) => [0, 15, 30, 45].map((shift) => (value + shift) % 60)))
  return `${second.join()} ${[...minutes].join()} * * * *`
}
