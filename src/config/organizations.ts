import { dirname, resolve } from 'node:path'
import type { CollectionConfig, DefinedCollection } from './collections.ts'
import { mergeCollections, withoutUndefined } from './collections.ts'
import type { FileConfig } from './schema.ts'
import { readTokenFile } from './token-file.ts'

type Settings = FileConfig['organizations'][number]

/** How a list is kept fresh between full walks; durations are milliseconds. */
interface RefreshSettings {
  every: number
  share: number
}

const REFRESH_DEFAULTS: RefreshSettings = { every: 300_000, share: 10 }

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
}

interface TokenOptions {
  /** Absolute path of the configuration file: paths of token files are relative to its folder. */
  file: string
  tokens: 'resolve' | 'leave'
  /** The environment variables in a value of organization `index`. */
  variablesIn: (index: number, key: 'token' | 'tokenFile') => readonly string[]
}

export function createOrganizations(
  { schedule, refresh, organizations }: Pick<FileConfig, 'schedule' | 'refresh' | 'organizations'>,
  defined: readonly DefinedCollection[],
  options: TokenOptions,
): OrganizationConfig[] {
  return organizations.map((own, index) => {
    const place = tokenPlace(own, options, index)
    return {
      id: own.id,
      name: own.name,
      schedule: own.schedule ?? schedule,
      refresh: mergeRefresh(refresh, own.refresh),
      collections: mergeCollections(defined, own.collections),
      readToken: createReadToken(own, options, place),
      tokenPlace: place,
    }
  })
}

/** The settings of an organization: its own, then those for all, then the defaults. */
function mergeRefresh(forAll: Settings['refresh'], own: Settings['refresh']): RefreshSettings | false {
  if ((own ?? forAll) === false) return false
  const settingsOf = (entry: Settings['refresh']) =>
    typeof entry === 'object' && entry !== null ? withoutUndefined(entry) : {}
  return { ...REFRESH_DEFAULTS, ...settingsOf(forAll), ...settingsOf(own) }
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
  { tokens, file }: TokenOptions,
  shown: string,
): () => string {
  if (tokens === 'leave')
    return () => {
      throw new Error(`The configuration was loaded without the token of organization ${name}`)
    }
  if (token !== undefined) return () => token
  const path = resolve(dirname(file), tokenFile ?? '')
  return () => readTokenFile({ organization: name, path, shown })
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
