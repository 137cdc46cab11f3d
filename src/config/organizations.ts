import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import {
  type CollectionConfig,
  type DefinedCollection,
  mergeCollections,
  OverrideEntry,
  withoutUndefined,
} from './collections.ts'
import { cronExpression, filePath, mapping, percent, timerDuration, truthValue } from './fields.ts'
import { LONGEST_TOKEN, readTokenFile, TOKEN_PATTERN } from './token-file.ts'
import { type Environment, interpolate } from './variables.ts'

/** Refreshes of many lists would otherwise follow each other without a pause. */
const SHORTEST_EVERY_MS = 1000

const every = timerDuration()
  .refine((ms) => ms >= SHORTEST_EVERY_MS, { error: 'must be at least 1s. Write it like 5m.' })
  .describe('How often the newest end of each list is read')
const share = percent(0.1).describe('Percent of the rate limit that refreshes may use')

export const RefreshObject = mapping({
  every: every.optional(),
  share: share.optional(),
})

/** How a list is kept fresh between full walks; durations are milliseconds. */
type RefreshSettings = ReturnType<typeof withoutUndefined<Required<z.output<typeof RefreshObject>>>>

const REFRESH_DEFAULTS: RefreshSettings = { every: 300_000, share: 10 }

/** False: lists are only walked whole. True, null or settings: they are refreshed, too. */
export const RefreshEntry = z
  .union([truthValue(), z.null(), RefreshObject], {
    error: 'must be a mapping of every and share, or false. Write it like { every: 5m, share: 10 }.',
  })
  .meta({ default: { every: '5m', share: 10 } })
  .describe('Reading the newest end of each list between full walks, and older pages within a share')

type RefreshSetting = z.output<typeof RefreshEntry> | undefined

/** The settings of an organization: its own, then those for all, then the defaults. */
function mergeRefresh(forAll: RefreshSetting, own: RefreshSetting): RefreshSettings | false {
  const entry = own ?? forAll
  if (entry === false) return false
  return { ...REFRESH_DEFAULTS, ...settingsOf(forAll), ...settingsOf(own) }
}

function settingsOf(entry: RefreshSetting): Partial<RefreshSettings> {
  return typeof entry === 'object' && entry !== null ? withoutUndefined(entry) : {}
}

/** A UUID of any version, in upper and lower case: a JSON Schema has no flag that ignores case. */
export const UUID_PATTERN = /^[\da-fA-F]{8}-(?:[\da-fA-F]{4}-){3}[\da-fA-F]{12}$/

const ID_TEXT = {
  error: 'must be the UUID of the organization. Write it like 7f3c0f1e-52c7-4a86-9d0b-3c4a5f6b7c8d.',
}
const NAME_TEXT = {
  error:
    'must be a short name for the command line and the logs: no control characters, and no space at either end.',
}
const TOKEN_TEXT = {
  error: `must be a token without quotes around it, NAME= before it, spaces, line breaks, control characters or letters beyond ASCII. Write it alone, without "Bearer", best as \${NAME} from the environment.`,
}

const LONG_TOKEN_TEXT = {
  abort: true,
  error: `must be a token of at most ${LONGEST_TOKEN} characters. Write it alone; a file goes under tokenFile.`,
}

export const OrganizationSchema = mapping(
  {
    id: z.string(ID_TEXT).regex(UUID_PATTERN, ID_TEXT).toLowerCase().describe('UUID of the organization'),
    name: z
      .string(NAME_TEXT)
      .regex(/^(?!\s)[^\p{Cc}]+(?<!\s)$/u, NAME_TEXT)
      .describe('Short name for the command line and the logs; unique'),
    token: z
      .string(TOKEN_TEXT)
      .max(LONGEST_TOKEN, LONG_TOKEN_TEXT)
      .regex(TOKEN_PATTERN, TOKEN_TEXT)
      .meta({ type: ['string', 'number'] })
      .optional()
      .describe(`Access token, best as \${NAME} from the environment; or give tokenFile`),
    tokenFile: filePath().optional().describe('File that holds the access token; read again for each run'),
    schedule: cronExpression().optional().describe('Instead of the schedule for all'),
    refresh: RefreshEntry.optional().describe('Instead of the refreshes for all'),
    collections: z
      .record(z.string(), OverrideEntry, {
        error: 'must be a mapping. Write each collection on a line like "orders: false", indented.',
      })
      .nullable()
      .transform((given) => given ?? {})
      .prefault({})
      .describe('Settings for this organization only (all but key); a collection set to false is not synced'),
  },
  'must be a mapping with id, name and token. Write each on a line like "name: acme".',
).meta({ oneOf: [{ required: ['token'] }, { required: ['tokenFile'] }] })

type Settings = z.output<typeof OrganizationSchema>

/** One tenant of the API. */
export interface OrganizationConfig {
  /** UUID in lower case. */
  id: string
  name: string
  /** Cron expression. */
  schedule: string
  /** False: its lists are only walked whole. */
  refresh: RefreshSettings | false
  /** Those that it syncs, with its overrides. */
  collections: CollectionConfig[]
  /**
   * A function, so that the token is not a property that a log line could print. Reads the token file at each call, and
   * throws a TokenFileError if it cannot; throws an Error when the configuration was loaded without tokens.
   */
  readToken: () => string
  /** Where the token is, as messages name it: the path of its file, or its environment variable. Never the token. */
  tokenPlace: string
  /** The absolute path of the token file; null if there is none, or a variable in the path is not set. */
  tokenFile: () => string | null
}

interface TokenOptions {
  /** Absolute path of the configuration file: paths of token files are relative to its folder. */
  file: string
  tokens: 'resolve' | 'leave'
  env: Environment
  /** The environment variables in a value of organization `index`. */
  variablesIn: (index: number, key: 'token' | 'tokenFile') => readonly string[]
}

export function createOrganizations(
  parsed: {
    schedule: string
    refresh?: Settings['refresh']
    organizations: readonly Settings[]
  },
  defined: readonly DefinedCollection[],
  options: TokenOptions,
): OrganizationConfig[] {
  return parsed.organizations.map((organization, index) => {
    const place = tokenPlace(organization, options, index)
    return {
      id: organization.id,
      name: organization.name,
      schedule: organization.schedule ?? parsed.schedule,
      refresh: mergeRefresh(parsed.refresh, organization.refresh),
      collections: mergeCollections(defined, organization.collections),
      readToken: createReadToken(organization, options, place),
      tokenPlace: place,
      tokenFile: () => tokenFilePath(organization, options),
    }
  })
}

/** A path that comes from a variable is not shown: it may hold a secret by mistake. */
function tokenPlace(
  { name, tokenFile }: Settings,
  { file, variablesIn }: TokenOptions,
  index: number,
): string {
  const key = tokenFile === undefined ? 'token' : 'tokenFile'
  const variables = variablesIn(index, key).map((variable) => `\${${variable}}`)
  if (tokenFile === undefined) return variables.join('') || `token of ${name} in the configuration`
  return variables.length === 0 ? resolve(dirname(file), tokenFile) : `named by ${variables.join(' and ')}`
}

function createReadToken(
  { name, token, tokenFile }: Settings,
  options: TokenOptions,
  place: string,
): () => string {
  if (options.tokens === 'leave') {
    return () => {
      throw new Error(`The configuration was loaded without the token of organization ${name}`)
    }
  }
  if (token !== undefined) return () => token
  const path = resolve(dirname(options.file), tokenFile ?? '')
  return () => readTokenFile({ organization: name, path, shown: place })
}

function tokenFilePath({ tokenFile }: Settings, { file, tokens, env }: TokenOptions): string | null {
  if (tokenFile === undefined) return null
  // With `leave` the variables in the path are not replaced yet.
  const known = tokens === 'leave' ? interpolate(tokenFile, env) : { value: tokenFile }
  return 'value' in known ? resolve(dirname(file), known.value) : null
}

/** Finds the organization that a command names: by its name, else its name in any case, else its UUID in any case. */
export function findOrganization(
  { organizations }: { organizations: readonly OrganizationConfig[] },
  nameOrId: string,
): OrganizationConfig | undefined {
  const folded = nameOrId.toLowerCase()
  return (
    organizations.find(({ name }) => name === nameOrId) ??
    organizations.find(({ name }) => name.toLowerCase() === folded) ??
    organizations.find(({ id }) => id === folded)
  )
}
