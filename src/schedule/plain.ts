interface FieldBounds {
  least: number
  most: number
}

/** Minute to day of week; a field of seconds comes before them. */
const FIELDS: readonly FieldBounds[] = [
  { least: 0, most: 59 },
  { least: 0, most: 23 },
  { least: 1, most: 31 },
  { least: 1, most: 12 },
  { least: 0, most: 7 },
]
const SECONDS: FieldBounds = { least: 0, most: 59 }

/** In leap years, February too; and in time every date falls on every day of the week. */
const EVERY_MONTH_HAS = 29

const PART = /^(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:\/(\d{1,2}))?$/

/**
 * Whether a cron expression is right at first sight: 5 or 6 fields of `*`, numbers, ranges that rise, and steps, which
 * fires in every month that it names. False tells nothing: one with names, `L` or the 31st has to be looked at closely.
 */
export function isPlain(expression: string): boolean {
  // Spaces alone: node-cron refuses the other white space that trim() takes away, when it comes to fire.
  const texts = expression.replace(/^ +| +$/g, '').split(/ +/)
  const fields = texts.length === FIELDS.length + 1 ? [SECONDS, ...FIELDS] : FIELDS
  if (texts.length !== fields.length) return false
  return fields.every((field, index) => isPlainField(texts[index] ?? '', field)) && hasCommonDay(texts.at(-3))
}

function isPlainField(text: string, { least, most }: FieldBounds): boolean {
  return text.split(',').every((part) => {
    const [whole, first, last = first, step] = PART.exec(part) ?? []
    if (whole === undefined || (step !== undefined && (Number(step) < 1 || Number(step) > most))) return false
    // A step behind one number is read in more than one way.
    if (first === undefined) return true
    const isRange = whole.includes('-') || step === undefined
    return isRange && least <= Number(first) && Number(first) <= Number(last) && Number(last) <= most
  })
}

/** One of the days of month comes in each of them. */
function hasCommonDay(days = ''): boolean {
  return days.split(',').some((part) => part.startsWith('*') || Number.parseInt(part, 10) <= EVERY_MONTH_HAS)
}
