import type { FileConfig } from './schema.ts'

/** Mirrored unless the file sets them to false. */
export const DEFAULT_COLLECTIONS = ['orders', 'establishments']

type Settings = Extract<FileConfig['collections'][string], { key: string[] }>
type Override = FileConfig['organizations'][number]['collections'][string]

/** One list endpoint, with all defaults filled in; durations are milliseconds. */
export type CollectionConfig = Omit<Settings, 'path'> & { name: string; path: string }

/** A collection of the top of the file, and whether organizations sync it by default. */
export interface DefinedCollection {
  config: CollectionConfig
  enabled: boolean
}

/** Returns the default collections, then those of the file in its order. `defaults`: the settings of one that has none. */
export function defineCollections(
  entries: FileConfig['collections'],
  defaults: Settings,
): DefinedCollection[] {
  const given = new Map(Object.entries(entries))
  return [...new Set([...DEFAULT_COLLECTIONS, ...given.keys()])].map((name) => {
    const entry = given.get(name)
    const settings = typeof entry === 'object' && entry !== null ? entry : defaults
    return {
      config: { ...settings, name, path: settings.path ?? `/api/v1/admin/${name}` },
      enabled: entry !== false,
    }
  })
}

/** Returns what one organization syncs: the collections that neither it nor the top turns off, with its overrides. */
export function mergeCollections(
  defined: readonly DefinedCollection[],
  overrides: Readonly<Record<string, Override>>,
): CollectionConfig[] {
  const given = new Map(Object.entries(overrides))
  return defined
    .filter(({ config, enabled }) => (given.has(config.name) ? given.get(config.name) !== false : enabled))
    .map(({ config }) => {
      const own = given.get(config.name)
      // Filters are not merged, so that an organization can drop one of the top.
      return typeof own === 'object' && own !== null ? { ...config, ...withoutUndefined(own) } : config
    })
}

/** The keys that are given. */
export function withoutUndefined<T extends object>(given: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>
  }
}
