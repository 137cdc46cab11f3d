import { CollectionSchema, type CollectionSettings, type Override } from './collection-schema.ts'

/** There unless the file sets them to false. */
export const DEFAULT_COLLECTIONS = ['orders', 'establishments']

/** One list endpoint, with everything filled in. */
export interface CollectionConfig {
  name: string
  /** Behind `baseUrl`, beginning with a slash. */
  path: string
  /** Dotted paths. */
  key: string[]
  /** Query parameters as they were typed. */
  filters: Record<string, string | string[]>
  /** Whether superseded versions are kept; a number: for so many milliseconds after they ended. */
  history: boolean | number
  /** Dotted paths. */
  ignore: string[]
  total: 'check' | 'ignore'
}

/** A collection of the top of the file, and whether organizations that say nothing about it sync it. */
export interface DefinedCollection {
  config: CollectionConfig
  enabled: boolean
}

type Entry = CollectionSettings | boolean | null | undefined

/** The default collections first, then those of the file in its order. */
export function defineCollections(entries: Readonly<Record<string, Entry>>): DefinedCollection[] {
  const given = new Map(Object.entries(entries))
  const names = new Set([...DEFAULT_COLLECTIONS, ...given.keys()])
  return [...names].map((name) => {
    const entry = given.get(name)
    const settings = typeof entry === 'object' && entry !== null ? entry : CollectionSchema.parse({})
    return {
      config: { ...settings, name, path: settings.path ?? `/api/v1/admin/${name}` },
      enabled: entry !== false,
    }
  })
}

/** What one organization syncs: each collection with its overrides, those left out that it or the top sets to false. */
export function mergeCollections(
  defined: readonly DefinedCollection[],
  overrides: Readonly<Record<string, Override>>,
): CollectionConfig[] {
  const given = new Map(Object.entries(overrides))
  return defined
    .filter(({ config, enabled }) => (given.has(config.name) ? given.get(config.name) !== false : enabled))
    .map(({ config }) => mergeOverride(config, given.get(config.name)))
}

function mergeOverride(config: CollectionConfig, override: Override | undefined): CollectionConfig {
  if (typeof override !== 'object' || override === null) return config
  return {
    ...config,
    path: override.path ?? config.path,
    // Whole: a filter of the top would otherwise be there for good.
    filters: override.filters ?? config.filters,
    history: override.history ?? config.history,
    ignore: override.ignore ?? config.ignore,
    total: override.total ?? config.total,
  }
}
