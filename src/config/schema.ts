import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import { isCron } from '../schedule/cron.ts'
import { isPostgresAddress, parsePostgresAddress } from './postgres-address.ts'
import { isToken } from './token-file.ts'
import { type KeyPath, type Mapping, mappingOf } from './yaml.ts'

// What each key of the file may be, also for editors. The values of the file are texts until these read them.

const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A hundred years: beyond it, times computed from a duration leave the range of a Date. */
const LONGEST_MS = 36_500 * UNITS.d

/** `500ms`, `30s`, `5m`, `24h`, `90d` in milliseconds; null for any other text. */
export function parseDuration(typed: string): number | null {
  const [, digits = '', unit = ''] = /^0*([1-9]\d*)(ms|s|m|h|d)$/.exec(typed) ?? []
  const ms = Number(digits) * (UNITS[unit as keyof typeof UNITS] ?? Number.NaN)
  return ms <= LONGEST_MS ? ms : null
}

function duration(most = LONGEST_MS) {
  const must = `must be a duration with its unit, like 500ms, 30s, 5m, 24h or 90d, and at most ${most / UNITS.d}d`
  return z
    .string(must)
    .refine((typed) => (parseDuration(typed) ?? Number.POSITIVE_INFINITY) <= most, must)
    .transform((typed) => parseDuration(typed) ?? 0)
    .meta({ type: 'string', pattern: '^0*[1-9]\\d*(ms|s|m|h|d)$' })
}

/** For waits on a timer of Node: one that is longer ends at once. */
const wait = () => duration(24 * UNITS.d)

const number = (range: z.ZodNumber, must = 'must be a number like 300 or 0.5', form = /^\d+(?:\.\d+)?$/) =>
  z.string(must).regex(form, must).transform(Number).pipe(range)

const whole = (least: number, most = Number.MAX_SAFE_INTEGER) =>
  number(z.int().min(least).max(most), 'must be a whole number like 300', /^\d+$/)

const percent = (least: number) => number(z.number().min(least).max(100))

const truth = z
  .stringbool({ truthy: ['true'], falsy: ['false'], case: 'sensitive' })
  .meta({ type: 'boolean' })

const ADDRESS = 'must be an http or https address without user name, query (?) and fragment (#)'
const baseUrl = z
  .url({ protocol: /^https?$/, error: ADDRESS })
  .refine((typed) => !/[@?#]/.test(typed), ADDRESS)
  .transform((typed) => new URL(typed).href.replace(/\/+$/, ''))

const PING = 'must be an http or https address without user name'
/** A variable in it stays for commands that send no pings. */
const ping = z
  .string()
  .regex(/^https?:\/\/[^\s@#]+$|\$\{/, PING)
  .refine((typed) => URL.canParse(typed) || typed.includes('${'), PING)

const urlPath = z
  .string()
  .regex(
    /^\/(?!\/)[^\s?#]*$/,
    'must be a path like /api/v1/admin/orders; what stands behind a ? goes under filters',
  )

const filePath = z
  .string()
  .regex(/^(?!~).*[^/]$/, 'must be the path of a file, not of a folder, and without ~')

const database = filePath.superRefine((typed, context) => {
  const address = isPostgresAddress(typed) && parsePostgresAddress(typed)
  if (address && 'problem' in address) context.addIssue(address.problem)
})

/** One that lets somebody write but not read is probably a decimal number. */
const fileMode = z
  .string()
  .regex(/^0?[4-7][04-7]{2}$/, 'must be a file mode in octal digits, like "0644"')
  .transform((typed) => Number.parseInt(typed, 8))

/** An offset that is no multiple of a quarter of an hour: no place has one, and schedules count on it. */
const ODD_OFFSET = /^[+-]\d\d:?(?!00|15|30|45)\d\d$/

const timezone = z.string().refine((typed) => {
  if (ODD_OFFSET.test(typed)) return false
  try {
    // Saves the 12 ms that the first DateTimeFormat takes.
    return typed === 'UTC' || Intl.DateTimeFormat('en', { timeZone: typed }) !== null
  } catch {
    return false
  }
}, 'must be a time zone, like UTC or Europe/Paris')

const cron = z.string().refine(isCron, 'must be a cron expression of 5 or 6 fields in quotes')

/** A field of an item. */
const field = z
  .string()
  .regex(/^[^.]+(\.[^.]+)*$/, 'must be a field, or a dotted path to one, like customer.id')

const MAPPING = 'must be a mapping'
const TYPES: Partial<Record<string, string>> = {
  object: MAPPING,
  record: MAPPING,
  array: 'must be a list',
  string: 'must be a text',
}

/** For a value of another type than its key has, if the key has no words of its own. */
export function wordsForWrongType(issue: z.core.$ZodRawIssue): string | undefined {
  return issue.code === 'invalid_type' ? TYPES[issue.expected] : undefined
}

/** A mapping of these keys alone. */
function mapping<const Shape extends z.ZodRawShape>(shape: Shape) {
  const known = Object.keys(shape).join(', ')
  return z.strictObject(shape, { error: ({ code }) => (code === 'unrecognized_keys' ? known : undefined) })
}

/** A mapping whose keys all have defaults. */
function section<const Shape extends z.ZodRawShape>(meaning: string, shape: Shape) {
  return mapping(shape)
    .prefault({} as never)
    .describe(meaning)
}

/** A key with a default, and what it means. */
function key<Value extends z.ZodType>(value: Value, standard: z.input<Value>, meaning: string) {
  return value.prefault(standard as never).describe(meaning)
}

/** A key whose absence means something else than any value. */
function nullable<Value extends z.ZodType>(value: Value, meaning: string) {
  return value.nullable().default(null).describe(meaning)
}

/** How lists are kept fresh. */
export const Refresh = mapping({
  every: key(wait(), '5m', 'How often the newest end of each list is read'),
  share: key(percent(0.1), '10', 'Percent of the rate limit that refreshes may use'),
})
const refresh = z
  .union([truth, Refresh], 'must be a mapping of every and share, or false')
  .describe('Reading the newest end of each list between full walks, and older pages within a share')

const KEY = 'must be a field, a dotted path to one, or a list of at most 100 different fields'
// Each is a column of two indexes and a condition of every statement; SQLite allows some hundreds.
const isKey = (all: string[]) => all.length > 0 && all.length <= new Set(all.slice(0, 100)).size
const keyOfItems = z.union([field.transform((one) => [one]), z.array(field).refine(isKey, KEY)], KEY)

// Numbers and truth values are sent as they were typed.
const filterText = z.string().meta({ type: ['string', 'number', 'boolean'] })
const filters = z.record(
  z.string().refine((name) => name !== 'page', 'cannot be a filter: see backfill --from-page'),
  z.union([filterText, z.array(filterText).min(1)], 'must be a text or a number, or a list of them'),
)
const history = z.union([truth, duration()], 'must be true, false, or a duration like 90d')

/** One list; only its path takes the default from its name. */
export const Collection = mapping({
  path: urlPath.optional().describe('Path of the list behind baseUrl. Default: /api/v1/admin/NAME'),
  key: key(keyOfItems, 'id', 'What tells two items apart: a field, a dotted path (a.id), or a list of them'),
  filters: key(filters, {}, "Sent as query parameters; an organization's replace all of them"),
  history: key(history, 'true', 'Keep superseded versions: true, false, or for how long (90d)'),
  ignore: key(z.array(field), [], 'Fields that are not compared: a row in which only these differ stays'),
  total: key(z.enum(['check', 'ignore']), 'check', 'Whether meta.total can be counted by'),
  newest: key(z.enum(['auto', 'first', 'last']), 'auto', 'The end of the list where new items appear'),
})
const { key: _, ...overridable } = Collection.shape

/** Its tables stand beside the mirror's own. With the ends of their names, and of their indexes, it fits into the 63 bytes that PostgreSQL has for one. */
const collectionName = z
  .string()
  .regex(
    /^(?!sync_|sqlite_|organizations$)(?!.*__)[a-z][a-z0-9_]{0,39}(?<!_)$/i,
    'must be a name of at most 40 letters, digits and _ that begins with a letter, without __, and none of the mirror itself (organizations, sync_...). ' +
      'Choose another one, and give the address as its path',
  )

/** What the mirror appends to the name of a collection for its other tables and views. */
const OWN_ENDS = /_(?:raw|json|history|versions|changes)$/i

/** False: not synced. True, empty or settings: synced. */
function mappingOfCollections<Settings extends z.ZodType>(one: Settings, meaning: string) {
  const entry = z.union(
    [truth, z.null(), one],
    'must be a mapping of settings ({} for the defaults), or false',
  )
  return z
    .record(collectionName, entry)
    .prefault({} as never)
    .describe(meaning)
}

const TOKEN = `must be a token alone, without "Bearer", quotes and spaces, best as \${NAME} from the environment`

const organization = mapping({
  id: z.guid('must be the UUID of the organization').toLowerCase().describe('UUID of the organization'),
  name: z
    .string()
    .regex(/^\S(.*\S)?$/, 'must be a short name')
    .describe('Short name for the command line and the logs; unique'),
  token: z
    .string()
    .refine(isToken, TOKEN)
    .meta({ type: ['string', 'number'] })
    .optional()
    .describe(`Access token, best as \${NAME} from the environment; or give tokenFile`),
  tokenFile: filePath.optional().describe('File that holds the access token; read again for each run'),
  schedule: cron.optional().describe('Instead of the schedule for all'),
  refresh: refresh.optional().describe('Instead of the refreshes for all'),
  collections: mappingOfCollections(
    mapping(overridable),
    'Settings for this organization only (all but key); one set to false is not synced',
  ),
}).meta({ oneOf: [{ required: ['token'] }, { required: ['tokenFile'] }] })

/** The configuration file, with all defaults; durations are milliseconds. */
export const FileSchema = mapping({
  api: mapping({
    baseUrl: baseUrl.describe('Address of the API, a path prefix included; no user name, query or fragment'),
    timeout: key(wait(), '30s', 'Timeout of one request, including its body'),
    maxResponseBytes: key(whole(1024), '33554432', 'Largest answer that is read, decompressed'),
  }).describe('The API that is mirrored'),
  rateLimit: section('How fast requests may be sent', {
    requestsPerMinute: nullable(whole(1), 'A ceiling of our own: no 60 seconds hold more. Default: none'),
    sharePercent: key(percent(1), '100', "Our share of the server's limit, in percent"),
    scope: key(z.enum(['token', 'organization', 'all']), 'token', 'Who shares one budget'),
    fallbackWait: key(wait(), '60s', 'Pause after a 429 that announces none'),
    maxWait: key(duration(), '15m', 'Longest pause to wait for; beyond it the run stops where it is'),
  }),
  retry: section('Further tries after faults that pass by themselves; a 429 is none', {
    attempts: key(whole(1), '5', 'Tries of one page for faults that pass by themselves'),
    minDelay: key(wait(), '1s', 'Shortest wait between two tries of a page'),
    maxDelay: key(wait(), '60s', 'Longest wait between two tries; never less than minDelay'),
  }),
  database: key(
    database,
    '../data/mirror.db',
    'The mirror, relative to this folder; or postgres://user@host:5432/name?schema=admin_mirror',
  ),
  publish: nullable(filePath, 'A copy for readers. Default: none'),
  publishEvery: key(duration(), '5m', 'Shortest time between two copies'),
  publishMode: key(fileMode, '0644', 'File mode of the copy'),
  ping: nullable(ping, 'URL of a dead-man switch, which is told of runs and of the verdict. Default: none'),
  schedule: key(cron, '*/15 * * * *', 'When to sync: cron, 5 or 6 fields'),
  refresh: refresh.optional(),
  timezone: key(timezone, 'UTC', 'Time zone of the schedules'),
  concurrency: key(whole(1, 100), '4', 'Requests in flight at the same time'),
  maxPasses: key(whole(1, 10), '3', 'Passes of one walk over a list that changes meanwhile'),
  resumeWithin: key(duration(), '24h', 'An interrupted walk without progress for longer starts over'),
  removals: section('More removals than both in one walk are held back', {
    brakePercent: key(percent(0), '20', "Percent of the job's live rows that one walk may remove"),
    brakeRows: key(whole(0), '10', 'Rows that one walk may remove whatever the percentage'),
  }),
  keepRuns: key(duration(), '90d', 'For how long lines of sync_runs and closed walks are kept'),
  http: nullable(
    mapping({
      host: key(z.string().min(1), '127.0.0.1', 'Address to listen on; 0.0.0.0 for all, as in a container'),
      port: key(whole(0, 65_535), '9464', 'Port to listen on; 0 for any that is free'),
    }),
    'Health, metrics and status over HTTP. Default: no listener',
  ),
  collections: mappingOfCollections(
    Collection,
    'The lists to mirror; orders and establishments are there unless false',
  ),
  organizations: z
    .array(organization)
    .min(1, 'must name at least one organization, with id, name and token')
    .describe('The organizations whose lists are mirrored'),
}).meta({ title: 'Configuration of admin-mirror' })

export type FileConfig = z.output<typeof FileSchema>

const OF_MIRROR = ['', '-wal', '-shm', '-journal']

/** Reports what breaks a rule that involves more than one key. Reads the plain values, so that no problem hides others. */
export function checkAcrossKeys(
  { database: mirror = '../data/mirror.db', publish, collections, organizations }: Mapping,
  file: string,
  report: (path: KeyPath, message: string) => void,
): void {
  const placeOf = (path: unknown) => resolve(dirname(file), String(path))
  if (publish !== undefined && isPostgresAddress(String(mirror)))
    report(['publish'], 'copies a mirror in a file, and this one is on a server')
  if (publish !== undefined && OF_MIRROR.some((end) => placeOf(publish) === placeOf(mirror) + end))
    report(['publish'], 'is the file of database, or one of those that SQLite keeps beside it')

  const names = collectionNames(mappingOf(collections))
  for (const [index, name] of names.entries())
    if (isIn(name, names.slice(0, index)) || (OWN_ENDS.test(name) && isIn(name.replace(OWN_ENDS, ''), names)))
      report(['collections', name], 'is the name of another collection or of one of its tables, in any case')

  const all = Array.isArray(organizations) ? organizations.map(mappingOf) : []
  for (const [index, one] of all.entries()) {
    const path = ['organizations', index]
    for (const own of ['id', 'name']) {
      const others = all.slice(0, index).map((other) => other[own])
      if (isIn(one[own], others)) report([...path, own], 'is that of another organization, too')
    }
    if (one.token !== undefined && one.tokenFile !== undefined)
      report([...path, 'tokenFile'], 'is given beside token: keep one of the two')
    if (one.token === undefined && one.tokenFile === undefined)
      report([...path, 'token'], `is missing: it or tokenFile must be there, best as token: \${NAME}`)
    for (const name of Object.keys(mappingOf(one.collections)).filter((given) => !names.includes(given)))
      report([...path, 'collections', name], `is not under collections; there are: ${names.join(', ')}`)
  }
}

/** The collections that are mirrored unless the file sets them to false, then those of the file in its order. */
export function collectionNames(collections: Mapping): string[] {
  return [...new Set(['orders', 'establishments', ...Object.keys(collections)])]
}

/** Whether a text is in a list, in any case. */
function isIn(text: unknown, list: readonly unknown[]): boolean {
  return typeof text === 'string' && list.some((other) => String(other).toLowerCase() === text.toLowerCase())
}
