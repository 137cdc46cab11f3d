import { z } from 'zod'
import { CollectionEntry, withoutUndefined } from './collections.ts'
import {
  baseUrl,
  choice,
  cronExpression,
  databasePlace,
  duration,
  fileMode,
  filePath,
  integer,
  list,
  listenHost,
  mapping,
  NOT_A_MAPPING,
  percent,
  pingAddress,
  positiveNumber,
  timerDuration,
  timezone,
} from './fields.ts'
import { OrganizationSchema, RefreshEntry, RefreshObject } from './organizations.ts'
import { isMapping } from './problems.ts'

/** Default; checks.ts compares it with `publish`. */
export const DEFAULT_DATABASE = '../data/mirror.db'

const api = mapping({
  baseUrl: baseUrl().describe('Address of the API, a path prefix included; no user name, query or fragment'),
  timeout: timerDuration().prefault('30s').describe('Timeout of one request, including its body'),
  maxResponseBytes: integer(1024).default(33_554_432).describe('Largest answer that is read, decompressed'),
})

const rateLimit = mapping({
  // 0.001 is one in 16 hours 40 minutes.
  requestsPerMinute: positiveNumber(0.001)
    .nullable()
    .default(null)
    .describe(
      'A ceiling of our own: no 60 seconds hold more requests; 0.5 is one in two minutes. Default: none',
    ),
  sharePercent: percent(1).default(100).describe("Our share of the server's limit, in percent"),
  scope: choice(['token', 'organization', 'all']).default('token').describe('Who shares one budget'),
  fallbackWait: timerDuration().prefault('60s').describe('Pause after a 429 that announces none'),
  maxWait: duration()
    .prefault('15m')
    .describe('Longest pause to wait for; beyond it the run stops and keeps its checkpoint'),
})

const retry = mapping({
  attempts: integer(1).default(10).describe('Attempts at one page when it fails with transient errors'),
  minDelay: timerDuration().prefault('1s').describe('Shortest wait between two attempts at a page'),
  maxDelay: timerDuration()
    .prefault('60s')
    .describe('Longest wait between two attempts; never less than minDelay'),
})

const removals = mapping({
  brakePercent: percent(0).default(20).describe("Percent of the job's live rows that one walk may remove"),
  brakeRows: integer(0).default(10).describe('Rows that one walk may remove whatever the percentage'),
})

const http = mapping({
  host: listenHost()
    .default('127.0.0.1')
    .describe('Address to listen on; 0.0.0.0 for all, as in a container'),
  port: integer(0, 65_535).default(9464).describe('Port to listen on; 0 for any that is free'),
})

/** A mapping whose keys all have defaults, which apply when it is absent or empty. */
function section<Section extends z.ZodObject>(object: Section, description: string) {
  return object
    .nullish()
    .transform((given): z.output<Section> => given ?? object.parse({}))
    .describe(description)
}

/** The mappings at the top of the file whose keys are known. */
export const SECTIONS = { api, rateLimit, retry, refresh: RefreshObject, removals, http }

/** The configuration file, with all defaults. */
export const FileSchema = mapping({
  api: api.describe('The API that is mirrored'),
  rateLimit: section(rateLimit, 'How fast requests may be sent'),
  retry: section(retry, 'Retries of transient errors'),
  database: databasePlace()
    .default(DEFAULT_DATABASE)
    .describe(
      "The mirror; relative to this file's folder. Or postgres://user@host:5432/name?schema=admin_mirror",
    ),
  publish: filePath()
    .nullable()
    .default(null)
    .describe('A copy that any tool can open read-only, made after complete full walks. Default: none'),
  publishEvery: duration().prefault('5m').describe('Shortest time between two copies'),
  publishMode: fileMode().prefault('0644').describe('File mode of the copy and of the numbers beside it'),
  ping: pingAddress()
    .nullable()
    .default(null)
    .describe('URL to notify when runs start, succeed or fail. Default: none'),
  schedule: cronExpression().default('*/15 * * * *').describe('When to sync: cron, 5 or 6 fields'),
  refresh: RefreshEntry.optional(),
  timezone: timezone().default('UTC').describe('Time zone of the schedules'),
  concurrency: integer(1, 100).default(4).describe('Requests in flight at the same time'),
  maxPasses: integer(1, 10)
    .default(3)
    .describe('Passes one walk may make over a list that changes meanwhile'),
  resumeWithin: duration()
    .prefault('24h')
    .describe('An interrupted walk without progress for longer starts over'),
  removals: section(removals, 'More removals than both in one walk are held back'),
  keepRuns: duration().prefault('90d').describe('For how long lines of sync_runs and closed walks are kept'),
  http: http.nullable().default(null).describe('Health, metrics and status over HTTP. Default: no listener'),
  collections: z
    .object(
      { orders: CollectionEntry.optional(), establishments: CollectionEntry.optional() },
      { error: NOT_A_MAPPING },
    )
    .catchall(CollectionEntry)
    .nullable()
    .transform((given) => given ?? {})
    .prefault({})
    .describe(
      'The lists to mirror, for every organization; orders and establishments are there unless false',
    ),
  organizations: list(OrganizationSchema, 'organizations')
    .min(1, { error: 'must name at least one organization. Write one with id, name and token.' })
    .describe('The organizations whose lists are mirrored'),
}).meta({ title: 'Configuration of admin-mirror' })

export type FileConfig = z.output<typeof FileSchema>

/** A JSON Schema or a part of one. */
export type JsonSchema = Record<string, unknown>

/** The JSON Schema of the configuration file, for editors: what may be typed there, `${NAME}` included. */
export function editorSchema(): JsonSchema {
  const schema = z.toJSONSchema(FileSchema, {
    io: 'input',
    target: 'draft-7',
    // zod omits the default of a value that is parsed from a text.
    override({ zodSchema, jsonSchema }) {
      if (zodSchema instanceof z.ZodDefault) jsonSchema.default = zodSchema.def.defaultValue
    },
  })
  return allowVariables(schema)
}

const VARIABLE: JsonSchema = { type: 'string', pattern: '\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}' }

/** Allows `${NAME}` in place of any number, truth value or restricted text. */
function allowVariables(schema: JsonSchema): JsonSchema {
  const { description, default: standard, ...rest } = portable(mapParts(schema, allowVariables))
  if (!isRestrictedScalar(rest)) return { ...rest, ...withoutUndefined({ description, default: standard }) }
  return { ...withoutUndefined({ description, default: standard }), anyOf: [rest, VARIABLE] }
}

/** Some validators know no Unicode classes in regular expressions (Python). */
function portable(schema: JsonSchema): JsonSchema {
  const { pattern } = schema
  if (typeof pattern !== 'string') return schema
  return { ...schema, pattern: pattern.replaceAll('\\p{Cc}', '\\u0000-\\u001f\\u007f-\\u009f') }
}

function isRestrictedScalar({ type, pattern, enum: choices }: JsonSchema): boolean {
  const isText = type === 'string' || (Array.isArray(type) && type.includes('string'))
  return isText
    ? pattern !== undefined || choices !== undefined
    : type === 'number' || type === 'integer' || type === 'boolean'
}

function mapParts(schema: JsonSchema, change: (part: JsonSchema) => JsonSchema): JsonSchema {
  const mapped: JsonSchema = { ...schema }
  for (const name of ['items', 'additionalProperties']) {
    const part = schema[name]
    if (isMapping(part)) mapped[name] = change(part)
  }
  if (Array.isArray(schema.anyOf))
    mapped.anyOf = schema.anyOf.map((part) => (isMapping(part) ? change(part) : part))
  if (isMapping(schema.properties)) {
    const parts = Object.entries(schema.properties)
    mapped.properties = Object.fromEntries(
      parts.map(([name, part]) => [name, isMapping(part) ? change(part) : part]),
    )
  }
  return mapped
}
