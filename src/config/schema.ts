import { z } from 'zod'
import {
  baseUrl,
  choice,
  cronExpression,
  databasePlace,
  duration,
  field,
  fileMode,
  filePath,
  keptFor,
  listenHost,
  number,
  pingAddress,
  shortName,
  timerDuration,
  timezone,
  truthValue,
  urlPath,
  uuid,
} from './fields.ts'
import { tokenFault } from './token-file.ts'

const MAPPING = 'must be a mapping. Write each setting on a line like "key: value", indented.'

/** A mapping of these keys alone. What it says of an unknown key is the list of the known ones. */
function mapping<const Shape extends z.ZodRawShape>(shape: Shape, text = MAPPING) {
  const known = Object.keys(shape).join(' ')
  return z.strictObject(shape, { error: ({ code }) => (code === 'unrecognized_keys' ? known : text) })
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
  timeout: timerDuration().prefault('30s').describe('Timeout of one request, including its body'),
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
  sharePercent: number(1, 100, 'number')
    .prefault('100')
    .describe("Our share of the server's limit, in percent"),
  scope: choice(['token', 'organization', 'all']).default('token').describe('Who shares one budget'),
  fallbackWait: timerDuration().prefault('60s').describe('Pause after a 429 that announces none'),
  maxWait: duration()
    .prefault('15m')
    .describe('Longest pause to wait for; beyond it the run stops and keeps its checkpoint'),
})

const retry = mapping({
  attempts: number(1)
    .prefault('5')
    .describe('Tries of one page for faults that pass by themselves; a 429 is none'),
  minDelay: timerDuration().prefault('1s').describe('Shortest wait between two tries of a page'),
  maxDelay: timerDuration()
    .prefault('60s')
    .describe('Longest wait between two tries; never less than minDelay'),
})

const removals = mapping({
  brakePercent: number(0, 100, 'number')
    .prefault('20')
    .describe("Percent of the job's live rows that one walk may remove"),
  brakeRows: number(0).prefault('10').describe('Rows that one walk may remove whatever the percentage'),
})

const http = mapping({
  host: listenHost()
    .default('127.0.0.1')
    .describe('Address to listen on; 0.0.0.0 for all, as in a container'),
  port: number(0, 65_535).prefault('9464').describe('Port to listen on; 0 for any that is free'),
})

const refreshKeys = {
  // Refreshes of many lists would otherwise follow each other without a pause.
  every: timerDuration(1000).describe('How often the newest end of each list is read'),
  share: number(0.1, 100, 'number').describe('Percent of the rate limit that refreshes may use'),
}
const refresh = z
  .union([truthValue(), z.null(), mapping(refreshKeys).partial()], {
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
const collectionEntry = z.union([truthValue(), z.null(), Collection], SWITCH)
const overrideEntry = z.union([truthValue(), z.null(), mapping(settings).partial()], SWITCH)

const TOKEN = `must be a token alone, without "Bearer", best as \${NAME} from the environment`

const organization = mapping(
  {
    id: uuid().describe('UUID of the organization'),
    name: shortName().describe('Short name for the command line and the logs; unique'),
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
    schedule: cronExpression().optional().describe('Instead of the schedule for all'),
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
  schedule: cronExpression().prefault('*/15 * * * *').describe('When to sync: cron, 5 or 6 fields'),
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
