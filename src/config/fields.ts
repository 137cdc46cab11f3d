import { z } from 'zod'
import { isCron } from '../schedule/cron.ts'
import { isPostgresAddress, parsePostgresAddress } from './postgres-address.ts'

// The values of the file are texts until these read them. What they say begins with "must", since of a missing value is said "is missing.
// It must ...".

const MILLISECONDS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A hundred years: beyond it, times computed from a duration leave the range of a Date. */
const LONGEST_MS = 36_500 * MILLISECONDS.d

/** The longest wait of a timer of Node; a longer one ends at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** `500ms`, `30s`, `5m`, `24h`, `90d` in milliseconds; null for any other text. */
export function parseDuration(text: string): number | null {
  const [, digits = '', unit = ''] = /^0*([1-9]\d*)(ms|s|m|h|d)$/.exec(text) ?? []
  const ms = Number(digits) * (MILLISECONDS[unit as keyof typeof MILLISECONDS] ?? Number.NaN)
  return ms <= LONGEST_MS ? ms : null
}

/** A text that `parse` turns into a value, or refuses by throwing an Error that says what it must be. */
function parsed<T>(must: string, parse: (text: string) => T, meta: object = {}) {
  return z
    .string({ error: `must be ${must}.` })
    .transform((text, context) => {
      try {
        return parse(text)
      } catch (error) {
        context.addIssue({ code: 'custom', message: `must ${(error as Error).message}.` })
        return z.NEVER
      }
    })
    .meta({ type: 'string', ...meta })
}

function refuse(must: string): never {
  throw new Error(must)
}

/** `least`, `most`: milliseconds. */
export function duration(least = 1, most = LONGEST_MS) {
  const must = 'a duration, a whole number with its unit. Write it like 500ms, 30s, 5m, 24h or 90d'
  return parsed(
    must,
    (text) => {
      const ms = parseDuration(text) ?? refuse(`be ${must}`)
      if (ms < least) refuse(`be at least ${least / 1000}s. Write it like 5m`)
      return ms <= most ? ms : refuse(`be at most ${Math.floor(most / MILLISECONDS.d)}d`)
    },
    { pattern: '^0*[1-9]\\d*(ms|s|m|h|d)$' },
  )
}

/** For how long superseded versions are kept. */
export function keptFor() {
  const must = 'true, false, or a duration with its unit. Write it like 90d'
  const read = (text: string) =>
    text === 'true' || text === 'false' ? text === 'true' : (parseDuration(text) ?? refuse(`be ${must}`))
  return parsed(must, read, { type: ['string', 'boolean'] })
}

/** For waits on a timer. */
export const timerDuration = (least = 1) => duration(least, LONGEST_TIMER_MS)

export function number(
  least: number,
  most: number = Number.MAX_SAFE_INTEGER,
  type: 'number' | 'integer' = 'integer',
) {
  const range = most === Number.MAX_SAFE_INTEGER ? `of ${least} or more` : `from ${least} to ${most}`
  const must = `a ${type === 'integer' ? 'whole ' : ''}number ${range}${type === 'number' && most === 100 ? ', without a % sign' : ''}`
  return parsed(
    must,
    (text) => {
      const value = /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:e[-+]?\d+)?$/i.test(text) ? Number(text) : Number.NaN
      const isRight = least <= value && value <= most && (type === 'number' || Number.isInteger(value))
      return isRight ? value : refuse(`be ${must}`)
    },
    { type, minimum: least, maximum: most },
  )
}

export function truthValue() {
  return z
    .stringbool({ truthy: ['true'], falsy: ['false'], case: 'sensitive', error: 'must be true or false.' })
    .meta({ type: 'boolean' })
}

export function choice<const Choices extends readonly string[]>(choices: Choices) {
  return z.enum(choices, { error: `must be one of ${choices.join(', ')}.` })
}

/** `baseUrl`: http or https, with at most a path prefix; returned without the slash at its end. */
export function baseUrl() {
  const must = 'the http or https address of the API. Write it like https://admin.example.com'
  return parsed(must, (text) => {
    const url = webAddress(text) ?? refuse(`be ${must}`)
    if (url.username !== '' || url.password !== '')
      refuse('not hold a user name or password. Tokens go under organizations')
    if (/[?#]/.test(text)) refuse('not hold a query or fragment (? or #). Filters go under collections')
    return url.origin + url.pathname.replace(/\/+$/, '')
  })
}

/** Where pings go. A variable in it stays for commands that send none. */
export function pingAddress() {
  const must = 'an http or https address. Write it like https://hc.example.com/your-id, or as a variable'
  return parsed(must, (text) => {
    if (/\$\{\w+\}/.test(text)) return text
    const url = webAddress(text)
    return url && url.username + url.password + url.hash === '' ? text : refuse(`be ${must}`)
  })
}

function webAddress(text: string): URL | null {
  return /^https?:\/\/[^\s\\]+$/i.test(text) && URL.canParse(text) ? new URL(text) : null
}

/** The path of a collection's list. It is appended to `baseUrl` unchanged. */
export function urlPath() {
  return parsed('a path behind baseUrl. Write it like /api/v1/admin/orders', (text) => {
    if (!/^\/(?!\/)[^\s\\\p{Cc}]*$/u.test(text))
      refuse('begin with one / and hold no spaces. Write it like /api/v1/admin/orders, without the host')
    if (/[?#]/.test(text)) refuse('not hold a query or fragment (? or #). Filters go under filters')
    if (text.split('/').some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment)))
      refuse('not hold . or .. between slashes. Write the whole path out')
    return text
  })
}

const FILE = 'the path of a file. Write it like ../data/mirror.db; it counts from the folder of this file'

export function filePath() {
  return parsed(FILE, parseFilePath)
}

function parseFilePath(text: string): string {
  if (!/^[^\p{Cc}]+$/u.test(text)) refuse(`be ${FILE}`)
  if (/[/\\]$/.test(text)) refuse('be a file, but this names a folder. Add the name of the file')
  if (text.startsWith('~')) refuse(`not begin with ~, which only a shell replaces. Write \${HOME} instead`)
  if (/^(?:file:|:memory:)/i.test(text))
    refuse('be the plain path of a file, not an address and not :memory:')
  return text
}

/** A file for the mirror, or the address of a PostgreSQL schema. */
export function databasePlace() {
  return parsed('a file, or postgres://user@host:5432/name?schema=admin_mirror', (text) => {
    if (!isPostgresAddress(text)) return parseFilePath(text)
    const address = parsePostgresAddress(text)
    return 'problem' in address ? refuse(address.problem.replaceAll(/^must |\.$/g, '')) : text
  })
}

/** A mode as chmod takes it, `0644`. One that lets somebody write but not read is probably a decimal number, such as 420. */
export function fileMode() {
  const must =
    'a file mode in octal digits that lets the owner read, and lets nobody write who may not read. Write it like "0644" or "0640"; 420 is 0644 in decimal'
  return parsed(must, (text) =>
    /^(?:0o?)?[4-7][04-7]{2}$/.test(text) ? Number.parseInt(text.replace('o', ''), 8) : refuse(`be ${must}`),
  )
}

export function timezone() {
  const must = 'a time zone. Write it like UTC or Europe/Paris'
  return parsed(must, (text) => {
    try {
      // Saves the 12 ms that the first DateTimeFormat takes.
      return text === 'UTC' || Intl.DateTimeFormat('en', { timeZone: text }) ? text : refuse(`be ${must}`)
    } catch {
      return refuse(`be ${must}`)
    }
  })
}

export function cronExpression() {
  const must = 'a cron expression. Write 5 or 6 fields in quotes, like "*/15 * * * *"'
  return parsed(must, (text) => (isCron(text) ? text : refuse(`be ${must}`)))
}

export function listenHost() {
  const must = 'a host name or IP address to listen on. Write it like 127.0.0.1, without http:// and port'
  return parsed(must, (text) => (/^[^\s/@\p{Cc}]+$/u.test(text) ? text : refuse(`be ${must}`)))
}

const FIELD = 'a field, or a dotted path to one. Write it like id or customer.id'

/** A field of an item. */
export function field() {
  return parsed(FIELD, (text) =>
    /^[^.\p{Cc}]+(?:\.[^.\p{Cc}]+)*$/u.test(text) ? text : refuse(`be ${FIELD}`),
  )
}

export function uuid() {
  const must = 'the UUID of the organization. Write it like 7f3c0f1e-52c7-4a86-9d0b-3c4a5f6b7c8d'
  return parsed(must, (text) => (UUID.test(text) ? text.toLowerCase() : refuse(`be ${must}`)))
}

export const UUID = /^[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}$/i

export function shortName() {
  const must =
    'a short name for the command line and the logs: no control characters, and no space at either end'
  return parsed(must, (text) => (/^(?!\s)[^\p{Cc}]+(?<!\s)$/u.test(text) ? text : refuse(`be ${must}`)))
}
