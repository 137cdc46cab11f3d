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

/** A text of this form. */
const form = (must: string, pattern: RegExp) =>
  text(must, (typed) => (pattern.test(typed) ? typed : undefined))

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

const DURATION = 'a duration, a whole number with its unit. Write it like 500ms, 30s, 5m, 24h or 90d'

function duration(least = 1, most = LONGEST_MS, range = '') {
  const read = (typed: string) => {
    const ms = parseDuration(typed) ?? 0
    return ms >= least && ms <= most ? ms : undefined
  }
  return text(DURATION + range, read, { type: 'string', pattern: '^0*[1-9]\\d*(ms|s|m|h|d)$' })
}

/** For waits on a timer. */
const timer = () => duration(1, LONGEST_TIMER_MS, ', at most 24d')

function number(least: number, most = Number.MAX_SAFE_INTEGER, type: 'number' | 'integer' = 'integer') {
  const range = most === Number.MAX_SAFE_INTEGER ? `of ${least} or more` : `from ${least} to ${most}`
  const kind = type === 'integer' ? 'a whole number' : 'a number'
  const read = (typed: string) => {
    const value = /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:e[-+]?\d+)?$/i.test(typed) ? Number(typed) : Number.NaN
    return least <= value && value <= most && (type === 'number' || Number.isInteger(value))
      ? value
      : undefined
  }
  return text(`${kind} ${range}`, read, { type, minimum: least, maximum: most })
}

const percent = (least: number) => number(least, 100, 'number')

const truth = () =>
  z
    .stringbool({ truthy: ['true'], falsy: ['false'], case: 'sensitive', error: 'must be true or false.' })
    .meta({ type: 'boolean' })

const choice = <const Choices extends readonly string[]>(choices: Choices) =>
  z.enum(choices, { error: `must be one of ${choices.join(', ')}.` })

const KEPT = 'true, false, or a duration with its unit. Write it like 90d'
/** For how long superseded versions are kept. */
const keptFor = () =>
  text(
    KEPT,
    (typed) => (/^(?:true|false)$/.test(typed) ? typed === 'true' : (parseDuration(typed) ?? undefined)),
    { type: ['string', 'boolean'] },
  )

function webAddress(typed: string): URL | null {
  const url = /^https?:\/\/[^\s\\]+$/i.test(typed) ? URL.parse(typed) : null
  return url && url.username + url.password === '' ? url : null
}

const baseUrl = () =>
  text(
    'the http or https address of the API, without user name or password, query or fragment (? or #). Write it like https://admin.example.com',
    (typed) => {
      const url = /[?#]/.test(typed) ? null : webAddress(typed)
      return url ? url.origin + url.pathname.replace(/\/+$/, '') : undefined
    },
  )

/** A variable in it stays for commands that send no pings. */
const pingAddress = () =>
  text('an http or https address. Write it like https://hc.example.com/your-id, or as a variable', (typed) =>
    /\$\{\w+\}/.test(typed) || webAddress(typed)?.hash === '' ? typed : undefined,
  )

/** It is appended to `baseUrl` unchanged. */
const urlPath = () =>
  form(
    'a path behind baseUrl: it must begin with one /, without the host, spaces, query or fragment (? or #), and . or .. between slashes. ' +
      'Write it like /api/v1/admin/orders; filters go under filters',
    /^\/(?!\/)(?!(?:.*\/)?(?:\.|%2e){1,2}(?:\/|$))[^\s\\?#\p{Cc}]*$/iu,
  )

const FILE =
  'the path of a file. One that ends in / names a folder, ~ is what only a shell replaces, and it is not :memory: or another address. ' +
  'Write it like ../data/mirror.db; it counts from the folder of this file'
const PLAIN_FILE = /^(?!~|file:|:memory:)[^\p{Cc}]*[^\p{Cc}/\\]$/iu
const filePath = () => form(FILE, PLAIN_FILE)

/** A file for the mirror, or the address of a PostgreSQL schema. */
const databasePlace = () =>
  z.string({ error: `must be ${FILE}.` }).superRefine((typed, context) => {
    const address = isPostgresAddress(typed) ? parsePostgresAddress(typed) : null
    const fault =
      address === null
        ? !PLAIN_FILE.test(typed) && `must be ${FILE}.`
        : 'problem' in address && address.problem
    if (fault) context.addIssue({ code: 'custom', message: fault })
  })

/** A mode as chmod takes it. One that lets somebody write but not read is probably a decimal number. */
const fileMode = () =>
  text(
    'a file mode in octal digits that lets the owner read, and lets nobody write who may not read. Write it like "0644" or "0640"; 420 is 0644 in decimal',
    (typed) =>
      /^(?:0o?)?[4-7][04-7]{2}$/.test(typed) ? Number.parseInt(typed.replace('o', ''), 8) : undefined,
  )

function isTimezone(typed: string): boolean {
  try {
    // Saves the 12 ms that the first DateTimeFormat takes.
    return typed === 'UTC' || Intl.DateTimeFormat('en', { timeZone: typed }) !== null
  } catch {
    return false
  }
}

const timezone = () =>
  text('a time zone. Write it like UTC or Europe/Paris', (typed) => (isTimezone(typed) ? typed : undefined))

const cron = () =>
  text('a cron expression. Write 5 or 6 fields in quotes, like "*/15 * * * *"', (typed) =>
    isCron(typed) ? typed : undefined,
  )

/** A field of an item. */
const field = () =>
  form(
    'a field, or a dotted path to one. Write it like id or customer.id',
    /^[^.\p{Cc}]+(?:\.[^.\p{Cc}]+)*$/u,
  )

export const UUID = /^[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}$/i

const MAPPING = 'must be a mapping. Write each setting on a line like "key: value", indented.'

/** A mapping of these keys alone. What it says of an unknown key is the list of the known ones. */
function mapping<const Shape extends z.ZodRawShape>(shape: Shape, says = MAPPING) {
  const known = Object.keys(shape).join(' ')
  return z.strictObject(shape, { error: ({ code }) => (code === 'unrecognized_keys' ? known : says) })
}

/** A mapping whose keys all have defaults, which apply when it is absent or empty. */
function section<Section extends z.ZodObject>(object: Section) {
  return object.nullish().transform((given): z.output<Section> => given ?? object.parse({}))
}

function list<Item extends z.ZodType>(item: Item, of: string) {
  return z.array(item, {
    error: `must be a list of ${of}. Write each on a line of its own that begins with "- ".`,
  })
}

const api = mapping({
  baseUrl: baseUrl().describe('Address of the API, a path prefix included; no user name, query or fragment'),
  timeout: timer().prefault('30s').describe('Timeout of one request, including its body'),
  maxResponseBytes: number(1024).prefault('33554432').describe('Largest answer that is read, decompressed'),
})

const rateLimit = mapping({
  // 0.001 is one in 16 hours 40 minutes.
  requestsPerMinute: number(0.001, undefined, 'number')
    .nullable()
    .default(null)
    .describe(
      'A ceiling of our own: no 60 seconds hold more requests; 0.5 is one in two minutes. Default: none',
    ),
  sharePercent: percent(1).prefault('100').describe("Our share of the server's limit, in percent"),
  scope: choice(['token', 'organization', 'all']).default('token').describe('Who shares one budget'),
  fallbackWait: timer().prefault('60s').describe('Pause after a 429 that announces none'),
  maxWait: duration()
    .prefault('15m')
    .describe('Longest pause to wait for; beyond it the run stops and keeps its checkpoint'),
})

const retry = mapping({
  attempts: number(1)
    .prefault('5')
    .describe('Tries of one page for faults that pass by themselves; a 429 is none'),
  minDelay: timer().prefault('1s').describe('Shortest wait between two tries of a page'),
  maxDelay: timer().prefault('60s').describe('Longest wait between two tries; never less than minDelay'),
})

const removals = mapping({
  brakePercent: percent(0).prefault('20').describe("Percent of the job's live rows that one walk may remove"),
  brakeRows: number(0).prefault('10').describe('Rows that one walk may remove whatever the percentage'),
})

const http = mapping({
  host: form(
    'a host name or IP address to listen on. Write it like 127.0.0.1, without http:// and port',
    /^[^\s/@\p{Cc}]+$/u,
  )
    .default('127.0.0.1')
    .describe('Address to listen on; 0.0.0.0 for all, as in a container'),
  port: number(0, 65_535).prefault('9464').describe('Port to listen on; 0 for any that is free'),
})

const refreshKeys = {
  // Refreshes of many lists would otherwise follow each other without a pause.
  every: duration(1000, LONGEST_TIMER_MS, ', at least 1s and at most 24d').describe(
    'How often the newest end of each list is read',
  ),
  share: percent(0.1).describe('Percent of the rate limit that refreshes may use'),
}
const refresh = z
  .union([truth(), z.null(), mapping(refreshKeys).partial()], {
    error: 'must be a mapping of every and share, or false. Write it like { every: 5m, share: 10 }.',
  })
  .meta({ default: { every: '5m', share: 10 } })
  .describe('Reading the newest end of each list between full walks, and older pages within a share')

/** Each is a column of two indexes and a condition of every statement; SQLite allows some hundreds. */
const MOST_KEY_FIELDS = 100

const key = z
  .union(
    [
      field().transform((one) => [one]),
      list(field(), 'fields')
        .min(1, { error: 'must name at least one field. Write id, or the fields that tell two items apart.' })
        .max(MOST_KEY_FIELDS, { error: `must name at most ${MOST_KEY_FIELDS} fields.` })
        .refine((paths) => new Set(paths).size === paths.length, { error: 'must not name a field twice.' }),
    ],
    {
      error:
        'must be a field, a dotted path to one, or a list of them. Write it like id or [order_id, line].',
    },
  )
  .describe(
    'What tells two items apart: a field, a dotted path (customer.id), or a list of them; the same for every organization',
  )

const FILTER = {
  error:
    'must be a text or a number, or a list of them. Write it like "state: paid"; put a word such as null in quotes, and filter[state] as one key in quotes.',
}
// Numbers and truth values are sent as they were typed.
const filterText = z.string(FILTER).meta({ type: ['string', 'number', 'boolean'] })
const filters = z
  .record(
    z.string(),
    z.union([filterText, z.array(filterText).min(1, { error: 'must not be an empty list.' })], FILTER),
    { error: 'must be a mapping of query parameters. Write each on a line like "state: paid".' },
  )
  .nullable()
  .transform((given) => given ?? {})

const settings = {
  path: urlPath().describe('Path of the list behind baseUrl. Default: /api/v1/admin/NAME'),
  filters: filters.describe(
    "Sent as query parameters with every request; an organization's replace all of them",
  ),
  history: keptFor().describe(
    'Keep superseded versions: true, false, or for how long after they ended (90d)',
  ),
  ignore: list(field(), 'fields')
    .nullable()
    .transform((given) => given ?? [])
    .describe(
      'Fields (dotted paths) that are not compared: a row in which only these differ is left as it is',
    ),
  total: choice(['check', 'ignore']).describe(
    'check: meta.total is the number of items, and walks are checked by it; ignore: it is not used',
  ),
  newest: choice(['auto', 'first', 'last']).describe(
    'The end of the list where new items appear; auto: refreshes learn it',
  ),
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

const TOKEN = `must be a token alone, without "Bearer", best as \${NAME} from the environment`

const organization = mapping(
  {
    id: form('the UUID of the organization. Write it like 7f3c0f1e-52c7-4a86-9d0b-3c4a5f6b7c8d', UUID)
      .transform((id) => id.toLowerCase())
      .describe('UUID of the organization'),
    name: form(
      'a short name for the command line and the logs: no control characters, and no space at either end',
      /^(?!\s)[^\p{Cc}]+(?<!\s)$/u,
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
    tokenFile: filePath().optional().describe('File that holds the access token; read again for each run'),
    schedule: cron().optional().describe('Instead of the schedule for all'),
    refresh: refresh.optional().describe('Instead of the refreshes for all'),
    collections: z
      .record(z.string(), overrideEntry, {
        error: 'must be a mapping. Write each collection on a line like "orders: false", indented.',
      })
      .nullable()
      .transform((given) => given ?? {})
      .prefault({})
      .describe('Settings for this organization only (all but key); a collection set to false is not synced'),
  },
  'must be a mapping with id, name and token. Write each on a line like "name: acme".',
).meta({ oneOf: [{ required: ['token'] }, { required: ['tokenFile'] }] })

/** The configuration file, with all defaults; durations are milliseconds. */
export const FileSchema = mapping({
  api: api.describe('The API that is mirrored'),
  rateLimit: section(rateLimit).describe('How fast requests may be sent'),
  retry: section(retry).describe('Further tries after faults that pass by themselves'),
  database: databasePlace()
    .prefault('../data/mirror.db')
    .describe(
      "The mirror; relative to this file's folder. Or postgres://user@host:5432/name?schema=admin_mirror",
    ),
  publish: filePath()
    .nullable()
    .default(null)
    .describe('A copy for readers, which any tool can open. Default: none'),
  publishEvery: duration().prefault('5m').describe('Shortest time between two copies'),
  publishMode: fileMode().prefault('0644').describe('File mode of the copy'),
  ping: pingAddress()
    .nullable()
    .default(null)
    .describe('URL of a dead-man switch, which is told of runs and of the verdict. Default: none'),
  schedule: cron().prefault('*/15 * * * *').describe('When to sync: cron, 5 or 6 fields'),
  refresh: refresh.optional(),
  timezone: timezone().prefault('UTC').describe('Time zone of the schedules'),
  concurrency: number(1, 100).prefault('4').describe('Requests in flight at the same time'),
  maxPasses: number(1, 10)
    .prefault('3')
    .describe('Passes one walk may make over a list that changes meanwhile'),
  resumeWithin: duration()
    .prefault('24h')
    .describe('An interrupted walk without progress for longer starts over'),
  removals: section(removals).describe('More removals than both in one walk are held back'),
  keepRuns: duration().prefault('90d').describe('For how long lines of sync_runs and closed walks are kept'),
  http: http.nullable().default(null).describe('Health, metrics and status over HTTP. Default: no listener'),
  collections: z
    .object(
      { orders: collectionEntry.optional(), establishments: collectionEntry.optional() },
      { error: MAPPING },
    )
    .catchall(collectionEntry)
    .nullable()
    .transform((given) => given ?? {})
    .prefault({})
    .describe(
      'The lists to mirror, for every organization; orders and establishments are there unless false',
    ),
  organizations: list(organization, 'organizations')
    .min(1, { error: 'must name at least one organization. Write one with id, name and token.' })
    .describe('The organizations whose lists are mirrored'),
}).meta({ title: 'Configuration of admin-mirror' })

export type FileConfig = z.output<typeof FileSchema>

/** The keys of each mapping at the top of the file. */
export const SECTIONS: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  Object.entries({ api, rateLimit, retry, removals, http }).map(([name, { shape }]) => [
    name,
    Object.keys(shape),
  ]),
)
