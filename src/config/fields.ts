import { z } from 'zod'
import { checkCron } from '../schedule/check-cron.ts'
import { isPostgresAddress, parsePostgresAddress } from './postgres-address.ts'

const MILLISECONDS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Whole, more than zero, with its unit. */
const DURATION_PATTERN = /^0*[1-9]\d*(?:ms|s|m|h|d)$/

/** A hundred years: beyond it, times computed from a duration leave the range of a Date. */
const LONGEST_DURATION_MS = 36_500 * MILLISECONDS.d

/** The longest wait of a timer of Node; a longer one ends at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** `500ms`, `30s`, `5m`, `24h`, `90d` in milliseconds; null for any other text. */
export function parseDuration(text: string): number | null {
  if (!DURATION_PATTERN.test(text)) return null
  const unit = text.replace(/^\d+/, '') as keyof typeof MILLISECONDS
  const ms = Number.parseInt(text, 10) * MILLISECONDS[unit]
  return ms <= LONGEST_DURATION_MS ? ms : null
}

/** All of these begin with "must", since a missing value is reported as "is missing. It must ...". */
function must(text: string): { error: string } {
  return { error: `must be ${text}.` }
}

/** For a value that should be a mapping but is not. */
export const NOT_A_MAPPING = 'must be a mapping. Write each setting on a line like "key: value", indented.'

/** A mapping of these keys alone. What it says of an unknown key is the list of the known ones, for `explainUnknownKey`. */
export function mapping<const Shape extends z.ZodRawShape>(shape: Shape, text = NOT_A_MAPPING) {
  const isForbidden = (name: string) =>
    shape[name] instanceof z.ZodOptional && shape[name].unwrap() instanceof z.ZodNever
  const known = Object.keys(shape)
    .filter((name) => !isForbidden(name))
    .join(' ')
  return z.strictObject(shape, { error: ({ code }) => (code === 'unrecognized_keys' ? known : text) })
}

const DURATION = must('a duration, a whole number with its unit. Write it like 500ms, 30s, 5m, 24h or 90d')

/** A text such as `30s`, parsed to milliseconds. */
export function duration(longest = LONGEST_DURATION_MS) {
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

/** For waits on a timer. */
export function timerDuration() {
  return duration(LONGEST_TIMER_MS)
}

/** How the JSON Schema describes a number, which `readValues` delivers as text. */
interface NumberShape {
  type: 'number' | 'integer'
  minimum?: number
  maximum?: number
}

/** A finite number of YAML. */
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

export function integer(least: number, most: number = Number.MAX_SAFE_INTEGER) {
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
  return z
    .stringbool({ truthy: ['true'], falsy: ['false'], case: 'sensitive', error: 'must be true or false.' })
    .meta({ type: 'boolean' })
}

export function choice<const Choices extends readonly string[]>(choices: Choices) {
  return z.enum(choices, must(`one of ${choices.join(', ')}`))
}

export function baseUrl() {
  return address(
    must('the http or https address of the API. Write it like https://admin.example.com'),
    parseBaseUrl,
  )
}

/** The address in its canonical form, or what is wrong with it and what to do. */
type Address = { value: string } | { problem: string }

function address(text: { error: string }, parse: (text: string) => Address) {
  return z.string(text).transform((typed, context) => {
    const parsed = parse(typed)
    if ('value' in parsed) return parsed.value
    context.addIssue({ code: 'custom', message: parsed.problem })
    return z.NEVER
  })
}

/** `baseUrl`: http or https, with at most a path prefix; returned without the slash at its end. */
export function parseBaseUrl(text: string): Address {
  const url = /^https?:\/\/[^\s\\]+$/i.test(text) && URL.canParse(text) ? new URL(text) : null
  if (!url) return { problem: 'must be an http or https address. Write it like https://admin.example.com.' }
  if (url.username !== '' || url.password !== '') {
    return { problem: 'must not hold a user name or password. Tokens go under organizations.' }
  }
  if (/[?#]/.test(text)) {
    return { problem: 'must not hold a query or fragment (? or #). Filters go under collections.' }
  }
  return { value: url.origin + url.pathname.replace(/\/+$/, '') }
}

/** An address that pings go to. A variable in it stays for commands that send none. */
export function pingAddress() {
  const text = must(
    'an http or https address. Write it like https://hc.example.com/your-id, or as a variable',
  )
  return z.string(text).refine(isPingAddress, text)
}

function isPingAddress(text: string): boolean {
  if (/\$\{\w+\}/.test(text)) return true
  if (!/^https?:\/\/[^\s\\]+$/i.test(text) || !URL.canParse(text)) return false
  const { username, password, hash } = new URL(text)
  return username === '' && password === '' && hash === ''
}

/** The path of a collection's list, behind `baseUrl`. */
export function urlPath() {
  return z
    .string(must('a path behind baseUrl. Write it like /api/v1/admin/orders'))
    .superRefine((text, context) => {
      const problem = findPathProblem(text)
      if (problem !== null) context.addIssue({ code: 'custom', message: problem })
    })
}

/** What is wrong with the path of a collection, or null. It is appended to `baseUrl` unchanged. */
export function findPathProblem(text: string): string | null {
  if (!/^\/(?!\/)[^\s\\\p{Cc}]*$/u.test(text)) {
    return 'must begin with one / and hold no spaces. Write it like /api/v1/admin/orders, without the host.'
  }
  if (/[?#]/.test(text)) return 'must not hold a query or fragment (? or #). Filters go under filters.'
  const climbs = text.split('/').some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment))
  return climbs ? 'must not hold . or .. between slashes. Write the whole path out.' : null
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
      error: 'must be a file, but this names a folder. Add the name of the file.',
    })
    .refine((path) => !path.startsWith('~'), {
      error: `must not begin with ~, which only a shell replaces. Write \${HOME} instead.`,
    })
    .refine((path) => !/^(?:file:|:memory:)/i.test(path), {
      error: 'must be the plain path of a file, not an address and not :memory:.',
    })
}

/** A file for the mirror, or the address of a PostgreSQL schema. */
export function databasePlace() {
  const file = filePath()
  return z
    .string(must(`a file. Write it like ../data/mirror.db; or ${POSTGRES_LIKE}`))
    .superRefine((text, context) => {
      if (isPostgresAddress(text)) {
        const parsed = parsePostgresAddress(text)
        if ('problem' in parsed) context.addIssue({ code: 'custom', message: parsed.problem })
        return
      }
      for (const { message } of file.safeParse(text).error?.issues ?? [])
        context.addIssue({ code: 'custom', message })
    })
}

const POSTGRES_LIKE = 'postgres://user@host:5432/name?schema=admin_mirror'

/**
 * A mode as chmod takes it, `0644`, or as YAML writes octal numbers, `0o644`. One that lets somebody write or execute but not
 * read is refused: it is probably a decimal number, such as 420 for 0644.
 */
export function fileMode() {
  const text = must(
    'a file mode in octal digits that lets the owner read, and lets nobody write who may not read. Write it like "0644" or "0640"; 420 is 0644 in decimal',
  )
  return z
    .string(text)
    .regex(/^(?:0o?)?[4-7][04-7]{2}$/, { ...text, abort: true })
    .transform((mode) => Number.parseInt(mode.replace('o', ''), 8))
}

export function timezone() {
  const text = must('a time zone. Write it like UTC or Europe/Paris')
  return z.string(text).refine(isTimezone, text)
}

function isTimezone(name: string): boolean {
  // Saves the 12 ms that the first DateTimeFormat takes.
  if (name === 'UTC') return true
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

export function cronExpression() {
  const hint = 'Write 5 or 6 fields in quotes, like "*/15 * * * *".'
  return z.string({ error: `must be a cron expression. ${hint}` }).superRefine((text, context) => {
    const quote = checkCron(text)
    if (quote === null) return
    context.addIssue({ code: 'custom', message: `must be a cron expression. ${hint}`, params: { quote } })
  })
}

export function listenHost() {
  const text = must(
    'a host name or IP address to listen on. Write it like 127.0.0.1, without http:// and port',
  )
  return z.string(text).regex(/^[^\s/@\p{Cc}]+$/u, text)
}
