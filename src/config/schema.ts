import { z } from 'zod'
import { isCron } from '../schedule/cron.ts'
import { isPostgresAddress, parsePostgresAddress } from './postgres-address.ts'
import { tokenFault } from './token-file.ts'

// What each key of the file may be, also for editors. The values of the file are texts until these read them. What they say begins with
// "must", since of a missing value is said "is missing. It must ...".

/** A text that `read` turns into a value; undefined: it is none. */
function text<T>(
  must: string,
  read: (typed: string) => T | undefined,
  meta: Record<string, unknown> = { type: 'string' },
) {
  const error = `must be ${must}.`
  return z
    .string({ error })
    .transform((typed, context) => {
      const value = read(typed)
      if (value !== undefined) return value
      context.addIssue({ code: 'custom', message: error })
      return z.NEVER
    })
    .meta(meta)
}

/** A text as it is, where it is one. */
const checked = (must: string, isOne: (typed: string) => boolean) =>
  text(must, (typed) => (isOne(typed) ? typed : undefined))

const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A hundred years: beyond it, times computed from a duration leave the range of a Date. */
const LONGEST_MS = 36_500 * UNITS.d

/** The longest wait of a timer of Node; a longer one ends at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** `500ms`, `30s`, `5m`, `24h`, `90d` in milliseconds; null for any other text. */
export function parseDuration(typed: string): number | null {
  const [, digits = '', unit = ''] = /^0*([1-9]\d*)(ms|s|m|h|d)$/.exec(typed) ?? []
  const ms = Number(digits) * (UNITS[unit as keyof typeof UNITS] ?? Number.NaN)
  return ms <= LONGEST_MS ? ms : null
}

function duration(standard: string, least = 1, most = LONGEST_MS, range = '') {
  const read = (typed: string) => {
    const ms = parseDuration(typed) ?? 0
    return ms >= least && ms <= most ? ms : undefined
  }
  const must = `a duration, a whole number with its unit. Write it like 500ms, 30s, 5m, 24h or 90d${range}`
  return text(must, read, { type: 'string', pattern: '^0*[1-9]\\d*(ms|s|m|h|d)$' }).prefault(standard)
}

/** For waits on a timer. */
const timer = (standard: string) => duration(standard, 1, LONGEST_TIMER_MS, ', at most 24d')

function number(least: number, most = Number.MAX_SAFE_INTEGER, type: 'number' | 'integer' = 'integer') {
  const range = most === Number.MAX_SAFE_INTEGER ? `of ${least} or more` : `from ${least} to ${most}`
  const read = (typed: string) => {
    const value = /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:e[-+]?\d+)?$/i.test(typed) ? Number(typed) : Number.NaN
    const isOne = least <= value && value <= most && (type === 'number' || Number.isInteger(value))
    return isOne ? value : undefined
  }
  const meta = { type, minimum: least, maximum: most }
  return text(`a ${type === 'integer' ? 'whole ' : ''}number ${range}`, read, meta)
}

const percent = (least: number) => number(least, 100, 'number')

const truth = () =>
  z
    .stringbool({ truthy: ['true'], falsy: ['false'], case: 'sensitive', error: 'must be true or false.' })
    .meta({ type: 'boolean' })

const choice = <const Choices extends readonly string[]>(choices: Choices) =>
  z.enum(choices, { error: `must be one of ${choices.join(', ')}.` })

/** For how long superseded versions are kept. */
const keptFor = text(
  'true, false, or a duration with its unit. Write it like 90d',
  (typed) => (/^(?:true|false)$/.test(typed) ? typed === 'true' : (parseDuration(typed) ?? undefined)),
  { type: ['string', 'boolean'] },
)

function webAddress(typed: string): URL | null {
  const url = /^https?:\/\/[^\s\\]+$/i.test(typed) ? URL.parse(typed) : null
  return url && url.username + url.password === '' ? url : null
}

const baseUrl = text(
  'the http or https address of the API, without user name or password, query or fragment (? or #). Write it like https://admin.example.com',
  (typed) => {
    const url = /[?#]/.test(typed) ? null : webAddress(typed)
    return url ? url.origin + url.pathname.replace(/\/+$/, '') : undefined
  },
)

/** A variable in it stays for commands that send no pings. */
const pingAddress = checked(
  'an http or https address. Write it like https://hc.example.com/your-id, or as a variable',
  (typed) => /\$\{\w+\}/.test(typed) || webAddress(typed)?.hash === '',
)

/** It is appended to `baseUrl` unchanged. */
const urlPath = checked(
  'a path behind baseUrl: it must begin with one /, without the host, spaces, query or fragment (? or #), and . or .. between slashes. ' +
    'Write it like /api/v1/admin/orders; filters go under filters',
  (typed) => /^\/(?!\/)(?!(?:.*\/)?(?:\.|%2e){1,2}(?:\/|$))[^\s\\?#\p{Cc}]*$/iu.test(typed),
)

const FILE = 'the path of a file, not of a folder, without ~. Write it like ../data/mirror.db'
const isFilePath = (typed: string) => /^(?!~|file:|:memory:)[^\p{Cc}]*[^\p{Cc}/\\]$/iu.test(typed)
const filePath = checked(FILE, isFilePath)

/** A file for the mirror, or the address of a PostgreSQL schema. */
const databasePlace = z.string({ error: `must be ${FILE}.` }).superRefine((typed, context) => {
  const address = isPostgresAddress(typed) ? parsePostgresAddress(typed) : null
  if (address === null ? !isFilePath(typed) : 'problem' in address)
    context.addIssue({
      code: 'custom',
      message: address && 'problem' in address ? address.problem : `must be ${FILE}.`,
    })
})

/** A mode as chmod takes it. One that lets somebody write but not read is probably a decimal number. */
const fileMode = text(
  'a file mode in octal digits that lets the owner read, and lets nobody write who may not read. Write it like "0644" or "0640"; 420 is 0644 in decimal',
  (typed) =>
    /^(?:0o?)?[4-7][04-7]{2}$/.test(typed) ? Number.parseInt(typed.replace('o', ''), 8) : undefined,
)

const timezone = checked('a time zone. Write it like UTC or Europe/Paris', (typed) => {
  try {
    // Saves the 12 ms that the first DateTimeFormat takes.
    return typed === 'UTC' || Intl.DateTimeFormat('en', { timeZone: typed }) !== null
  } catch {
    return false
  }
})

const cron = checked('a cron expression. Write 5 or 6 fields in quotes, like "*/15 * * * *"', isCron)

/** A field of an item. */
const field = checked('a field, or a dotted path to one. Write it like id or customer.id', (typed) =>
  /^[^.\p{Cc}]+(?:\.[^.\p{Cc}]+)*$/u.test(typed),
)

const MAPPING = 'must be a mapping. Write each setting on a line like "key: value", indented.'

/** A mapping of these keys alone. What it says of an unknown key is the list of the known ones. */
function mapping<const Shape extends z.ZodRawShape>(shape: Shape, says = MAPPING) {
  const known = Object.keys(shape).join(' ')
  return z.strictObject(shape, { error: ({ code }) => (code === 'unrecognized_keys' ? known : says) })
}

/** A mapping whose keys all have defaults, which apply when it is absent or empty. */
function section<const Shape extends z.ZodRawShape>(shape: Shape) {
  const object = mapping(shape)
  return object.nullish().transform((given): z.output<typeof object> => given ?? object.parse({}))
}

/** What an absent or empty value is read as. */
function orEmpty<Value extends z.ZodType>(value: Value, empty: () => z.output<Value>) {
  return value.nullable().transform((given): z.output<Value> => given ?? empty())
}

function list<Item extends z.ZodType>(item: Item, of: string) {
  const error = `must be a list of ${of}. Write each on a line of its own that begins with "- ".`
  return z.array(item, { error })
}

const api = mapping({
  baseUrl: baseUrl.describe('Address of the API, a path prefix included; no user name, query or fragment'),
  timeout: timer('30s').describe('Timeout of one request, including its body'),
  maxResponseBytes: number(1024).prefault('33554432').describe('Largest answer that is read, decompressed'),
})

const rateLimit = section({
  // 0.001 is one in 16 hours 40 minutes.
  requestsPerMinute: number(0.001, undefined, 'number')
    .nullable()
    .default(null)
    .describe('A ceiling of our own: no 60 seconds hold more; 0.5 is one in two minutes. Default: none'),
  sharePercent: percent(1).prefault('100').describe("Our share of the server's limit, in percent"),
  scope: choice(['token', 'organization', 'all']).default('token').describe('Who shares one budget'),
  fallbackWait: timer('60s').describe('Pause after a 429 that announces none'),
  maxWait: duration('15m').describe('Longest pause to wait for; beyond it the run stops where it is'),
})

const retry = section({
  attempts: number(1).prefault('5').describe('Tries of one page for faults that pass by themselves'),
  minDelay: timer('1s').describe('Shortest wait between two tries of a page'),
  maxDelay: timer('60s').describe('Longest wait between two tries; never less than minDelay'),
})

const removals = section({
  brakePercent: percent(0).prefault('20').describe("Percent of the job's live rows that one walk may remove"),
  brakeRows: number(0).prefault('10').describe('Rows that one walk may remove whatever the percentage'),
})

const http = mapping({
  host: checked('a host name or IP address. Write it like 127.0.0.1, without http:// and port', (typed) =>
    /^[^\s/@\p{Cc}]+$/u.test(typed),
  )
    .default('127.0.0.1')
    .describe('Address to listen on; 0.0.0.0 for all, as in a container'),
  port: number(0, 65_535).prefault('9464').describe('Port to listen on; 0 for any that is free'),
})

const refreshKeys = {
  // Refreshes of many lists would otherwise follow each other without a pause.
  every: duration('5m', 1000, LONGEST_TIMER_MS, ', at least 1s and at most 24d')
    .unwrap()
    .describe('How often the newest end of each list is read'),
  share: percent(0.1).describe('Percent of the rate limit that refreshes may use'),
}
const refresh = z
  .union([truth(), z.null(), mapping(refreshKeys).partial()], {
    error: 'must be a mapping of every and share, or false. Write it like { every: 5m, share: 10 }.',
  })
  .meta({ default: { every: '5m', share: 10 } })
  .describe('Reading the newest end of each list between full walks, and older pages within a share')

const KEY = 'must be a field, a dotted path to one, or a list of at most 100 different fields.'
const key = z
  .union(
    [
      field.transform((one) => [one]),
      // Each is a column of two indexes and a condition of every statement; SQLite allows some hundreds.
      list(field, 'fields')
        .min(1, { error: KEY })
        .max(100, { error: KEY })
        .refine((paths) => new Set(paths).size === paths.length, { error: KEY }),
    ],
    { error: KEY },
  )
  .describe('What tells two items apart: a field, a dotted path (customer.id), or a list of them')

// Numbers and truth values are sent as they were typed.
const filterText = z.string().meta({ type: ['string', 'number', 'boolean'] })
const filter = z.union([filterText, z.array(filterText).min(1)], {
  error:
    'must be a text or a number, or a list of them. Write it like "state: paid", filter[state] as one key in quotes.',
})

const settings = {
  path: urlPath.describe('Path of the list behind baseUrl. Default: /api/v1/admin/NAME'),
  filters: orEmpty(z.record(z.string(), filter, { error: MAPPING }), () => ({})).describe(
    "Sent as query parameters with every request; an organization's replace all of them",
  ),
  history: keptFor.describe('Keep superseded versions: true, false, or for how long (90d)'),
  ignore: orEmpty(list(field, 'fields'), () => []).describe(
    'Fields (dotted paths) that are not compared: a row in which only these differ is left as it is',
  ),
  total: choice(['check', 'ignore']).describe('Whether meta.total can be counted by'),
  newest: choice(['auto', 'first', 'last']).describe('The end of the list where new items appear'),
}

/** A collection of every organization, with its defaults; only `path` takes its default from the name. */
const Collection = mapping({
  path: settings.path.optional(),
  key: key.prefault('id'),
  filters: settings.filters.prefault({}),
  history: settings.history.prefault('true'),
  ignore: settings.ignore.prefault([]),
  total: settings.total.default('check'),
  newest: settings.newest.default('auto'),
})

/** The settings of a collection that has none of its own. */
export const COLLECTION_DEFAULTS = Collection.parse({})

const SWITCH = { error: 'must be a mapping of settings, or false. Write {} for the defaults.' }
/** False: not synced. True, null or settings: synced. */
const collectionEntry = z.union([truth(), z.null(), Collection], SWITCH)
const overrideEntry = z.union([truth(), z.null(), mapping(settings).partial()], SWITCH)

const UUID = /^[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}$/i
const TOKEN = `must be a token alone, without "Bearer", best as \${NAME} from the environment`

const organization = mapping(
  {
    id: checked('the UUID of the organization, like 7f3c0f1e-52c7-4a86-9d0b-3c4a5f6b7c8d', (id) =>
      UUID.test(id),
    )
      .transform((id) => id.toLowerCase())
      .describe('UUID of the organization'),
    name: checked('a short name: no control characters, and no space at either end', (name) =>
      /^(?!\s)[^\p{Cc}]+(?<!\s)$/u.test(name),
    ).describe('Short name for the command line and the logs; unique'),
    token: z
      .string({ error: `${TOKEN}.` })
      .superRefine((token, context) => {
        const fault = tokenFault(token)
        if (fault !== null) context.addIssue({ code: 'custom', message: `${TOKEN}; this ${fault}.` })
      })
      .meta({ type: ['string', 'number'] })
      .optional()
      .describe(`Access token, best as \${NAME} from the environment; or give tokenFile`),
    tokenFile: filePath.optional().describe('File that holds the access token; read again for each run'),
    schedule: cron.optional().describe('Instead of the schedule for all'),
    refresh: refresh.optional().describe('Instead of the refreshes for all'),
    collections: orEmpty(z.record(z.string(), overrideEntry, { error: MAPPING }), () => ({}))
      .prefault({})
      .describe('Settings for this organization only (all but key); one set to false is not synced'),
  },
  'must be a mapping with id, name and token. Write each on a line like "name: acme".',
).meta({ oneOf: [{ required: ['token'] }, { required: ['tokenFile'] }] })

const entries = z
  .object(
    { orders: collectionEntry.optional(), establishments: collectionEntry.optional() },
    { error: MAPPING },
  )
  .catchall(collectionEntry)

/** The configuration file, with all defaults; durations are milliseconds. */
export const FileSchema = mapping({
  api: api.describe('The API that is mirrored'),
  rateLimit: rateLimit.describe('How fast requests may be sent'),
  retry: retry.describe('Further tries after faults that pass by themselves; a 429 is none'),
  database: databasePlace
    .prefault('../data/mirror.db')
    .describe('The mirror, relative to this folder; or postgres://user@host:5432/name?schema=admin_mirror'),
  publish: filePath.nullable().default(null).describe('A copy for readers. Default: none'),
  publishEvery: duration('5m').describe('Shortest time between two copies'),
  publishMode: fileMode.prefault('0644').describe('File mode of the copy'),
  ping: pingAddress
    .nullable()
    .default(null)
    .describe('URL of a dead-man switch, which is told of runs and of the verdict. Default: none'),
  schedule: cron.prefault('*/15 * * * *').describe('When to sync: cron, 5 or 6 fields'),
  refresh: refresh.optional(),
  timezone: timezone.prefault('UTC').describe('Time zone of the schedules'),
  concurrency: number(1, 100).prefault('4').describe('Requests in flight at the same time'),
  maxPasses: number(1, 10).prefault('3').describe('Passes of one walk over a list that changes meanwhile'),
  resumeWithin: duration('24h').describe('An interrupted walk without progress for longer starts over'),
  removals: removals.describe('More removals than both in one walk are held back'),
  keepRuns: duration('90d').describe('For how long lines of sync_runs and closed walks are kept'),
  http: http.nullable().default(null).describe('Health, metrics and status over HTTP. Default: no listener'),
  collections: orEmpty(entries, () => ({}))
    .prefault({})
    .describe('The lists to mirror; orders and establishments are there unless false'),
  organizations: list(organization, 'organizations')
    .min(1, { error: 'must name at least one organization. Write one with id, name and token.' })
    .describe('The organizations whose lists are mirrored'),
}).meta({ title: 'Configuration of admin-mirror' })

export type FileConfig = z.output<typeof FileSchema>
