import { dirname, resolve } from 'node:path'
import type { FileConfig } from './schema.ts'
import { readTokenFile } from './token-file.ts'

// What the file says, with the settings of an organization laid over those for all.

/** Mirrored unless the file sets them to false. */
export const DEFAULT_COLLECTIONS = ['orders', 'establishments']

type Settings = Extract<FileConfig['collections'][string], { key: string[] }>

/** One list endpoint, with all defaults filled in; durations are milliseconds. */
export type CollectionConfig = Omit<Settings, 'path'> & { name: string; path: string }

/** A collection of the top of the file, and whether organizations sync it by default. */
export interface DefinedCollection {
  config: CollectionConfig
  enabled: boolean
}

const REFRESH_DEFAULTS = { every: 300_000, share: 10 }

/** One tenant of the API. */
export interface OrganizationConfig {
  /** UUID in lower case. */
  id: string
  name: string
  /** Cron expression. */
  schedule: string
  /** How its lists are kept fresh between full walks; false: they are only walked whole. */
  refresh: typeof REFRESH_DEFAULTS | false
  /** Those that it syncs, with its overrides. */
  collections: CollectionConfig[]
  /**
   * A function, so that the token is not a property that a log line could print. Reads the token file at each call, and
   * throws a TokenFileError if it cannot; throws an Error when the configuration was loaded without tokens.
   */
  readToken: () => string
  /** Where the token is, as messages name it: the path of its file, or its environment variable. Never the token. */
  tokenPlace: string
}

export interface TokenOptions {
  /** Absolute path of the configuration file: paths of token files are relative to its folder. */
  file: string
  tokens: 'resolve' | 'leave'
  /** The environment variables in a value of organization `index`. */
  variablesIn: (index: number, key: 'token' | 'tokenFile') => readonly string[]
}

/** Returns the default collections, then those of the file in its order. `defaults`: the settings of one that has none. */
export function defineCollections(
  entries: FileConfig['collections'],
  defaults: Settings,
): DefinedCollection[] {
  return [...new Set([...DEFAULT_COLLECTIONS, ...Object.keys(entries)])].map((name) => {
    const entry = Object.hasOwn(entries, name) ? entries[name] : undefined
    const settings = { ...defaults, ...settingsOf(entry) }
    const config = { ...settings, name, path: settings.path ?? `/api/v1/admin/${name}` }
    return { config, enabled: entry !== false }
  })
}

export function createOrganizations(
  { schedule, refresh, organizations }: Pick<FileConfig, 'schedule' | 'refresh' | 'organizations'>,
  defined: readonly DefinedCollection[],
  { file, tokens, variablesIn }: TokenOptions,
): OrganizationConfig[] {
  return organizations.map((own, index) => {
    const { id, name, token, tokenFile } = own
    const variables = variablesIn(index, tokenFile === undefined ? 'token' : 'tokenFile').map(
      (variable) => `\${${variable}}`,
    )
    const path = resolve(dirname(file), tokenFile ?? '')
    // A path that comes from a variable is not shown: it may hold a secret by mistake.
    const ofFile = variables.length === 0 ? path : `named by ${variables.join(' and ')}`
    const ofToken = variables.join('') || `token of ${name} in the configuration`
    const tokenPlace = tokenFile === undefined ? ofToken : ofFile
    const given = new Map(Object.entries(own.collections))
    return {
      id,
      name,
      schedule: own.schedule ?? schedule,
      refresh: (own.refresh ?? refresh) !== false && {
        ...REFRESH_DEFAULTS,
        ...settingsOf(refresh),
        ...settingsOf(own.refresh),
      },
      collections: defined
        .filter(({ config, enabled }) =>
          given.has(config.name) ? given.get(config.name) !== false : enabled,
        )
        // Filters are not merged, so that an organization can drop one of the top.
        .map(({ config }) => ({ ...config, ...settingsOf(given.get(config.name)) })),
      tokenPlace,
      readToken() {
        if (tokens === 'leave')
          throw new Error(`The configuration was loaded without the token of organization ${name}`)
        return token ?? readTokenFile({ organization: name, path, shown: tokenPlace })
      },
    }
  })
}

type Given<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

/** The settings that an entry gives; none if it is a switch. */
function settingsOf<T extends object>(entry: T | boolean | null | undefined): Given<T> {
  const given = typeof entry === 'object' && entry !== null ? Object.entries(entry) : []
  return Object.fromEntries(given.filter(([, value]) => value !== undefined)) as Given<T>
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
