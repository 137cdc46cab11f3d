import { z } from 'zod'
import { parseBaseUrl, parseHost } from './addresses.ts'
import { DURATION_PATTERN, LONGEST_MS, LONGEST_TIMER_MS, parseDuration } from './duration.ts'

/** Every text of these begins with "must": a missing value is reported as "is missing. It must ...". */
function must(text: string): { error: string } {
  return { error: `must be ${text}.` }
}

const DURATION = must('a duration, a whole number with its unit. Write it like 500ms, 30s, 5m, 24h or 90d')

/** In the file a text such as `30s`, afterwards milliseconds. */
export function duration(longest = LONGEST_MS) {
  return z
    .string(DURATION)
    .regex(DURATION_PATTERN, { ...DURATION, abort: true })
    .transform((text, context) => {
      const value = parseDuration(text)
      if (value !== null && value <= longest) return value
      context.addIssue({ code: 'custom', message: `must be at most ${Math.floor(longest / 86_400_000)}d.` })
      return z.NEVER
    })
}

/** For what is waited on a timer. */
export function timerDuration() {
  return duration(LONGEST_TIMER_MS)
}

/** What the JSON Schema says of a number, which the file may hold although it is read as text. */
interface NumberShape {
  type: 'number' | 'integer'
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
}

/** As YAML writes a number that is not infinite. */
const NUMBER = /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:e[-+]?\d+)?$/i

function number(text: { error: string }, isAllowed: (value: number) => boolean, shape: NumberShape) {
  return z
    .string(text)
    .transform((typed, context) => {
      const value = NUMBER.test(typed) ? Number(typed) : Number.NaN
      if (Number.isFinite(value) && isAllowed(value)) return value
      context.addIssue({ code: 'custom', message: text.error })
      return z.NEVER
    })
    .meta({ ...shape })
}

export function wholeNumber(least: number, most: number = Number.MAX_SAFE_INTEGER) {
  const isOpen = most === Number.MAX_SAFE_INTEGER
  return number(
    must(isOpen ? `a whole number of ${least} or more` : `a whole number from ${least} to ${most}`),
    (value) => Number.isInteger(value) && least <= value && value <= most,
    { type: 'integer', minimum: least, maximum: most },
  )
}

export function percent(least: number) {
  const text = must(`a number from ${least} to 100, without a % sign`)
  return number(text, (value) => least <= value && value <= 100, {
    type: 'number',
    minimum: least,
    maximum: 100,
  })
}

export function positiveNumber(least: number) {
  const text = must(`a number greater than 0, and at least ${least}`)
  return number(text, (value) => value >= least, { type: 'number', minimum: least })
}

/** `true` or `false`. */
export function truthValue() {
  return z.stringbool({ truthy: ['true'], falsy: ['false'], case: 'sensitive' }).meta({ type: 'boolean' })
}

export function choice<const Choices extends readonly string[]>(choices: Choices) {
  return z.enum(choices, must(`one of ${choices.join(', ')}`))
}

export function baseUrl() {
  return z
    .string(must('the http or https address of the API. Write it like https://admin.example.com'))
    .transform((text, context) => {
      const address = parseBaseUrl(text)
      if ('value' in address) return address.value
      context.addIssue({ code: 'custom', message: address.problem })
      return z.NEVER
    })
}

export function linkHost() {
  return z.string(must('a host name. Write it like api.example.com')).transform((text, context) => {
    const address = parseHost(text)
    if ('value' in address) return address.value
    context.addIssue({ code: 'custom', message: address.problem })
    return z.NEVER
  })
}

export function list<Item extends z.ZodType>(item: Item, of: string) {
  return z.array(item, must(`a list of ${of}. Write each on a line of its own that begins with "- "`))
}

export function filePath() {
  const text = must(
    'the path of a file. Write it like ../data/mirror.db; it counts from the folder of this configuration file',
  )
  return z
    .string(text)
    .regex(/^[^\p{Cc}]+$/u, { ...text, abort: true })
    .refine((path) => !/[/\\]$/.test(path), {
      error: 'must be a file, and this names a folder. Add the name of the file.',
    })
    .refine((path) => !path.startsWith('~'), {
      error: `must not begin with ~, which only a shell replaces. Write \${HOME} instead.`,
    })
    .refine((path) => !/^(?:file:|:memory:)/i.test(path), {
      error: 'must be a plain path of a file, no address and not :memory:.',
    })
}

export function timezone() {
  const text = must('a time zone. Write it like UTC or Europe/Paris')
  return z.string(text).refine(isTimezone, text)
}

function isTimezone(name: string): boolean {
  // The first zone that is asked for takes 12 ms, for nothing where it is the one that everybody knows.
  if (name === 'UTC') return true
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

export function cronExpression() {
  return z.string(must('a cron expression of 5 or 6 fields in quotes. Write it like "*/15 * * * *"'))
}

export function listenHost() {
  const text = must(
    'a host name or IP address to listen on. Write it like 127.0.0.1, without http:// and port',
  )
  return z.string(text).regex(/^[^\s/@\p{Cc}]+$/u, text)
}
