import { dirname, resolve } from 'node:path'
import { checkCollections } from './check-collections.ts'
import { type CronCheck, checkPaths, checkRetryDelays, checkSchedules } from './check-file.ts'
import { checkOrganizations } from './check-organizations.ts'
import { coerceVariables } from './coercion.ts'
import { type CollectionConfig, defineCollections } from './collections.ts'
import { ConfigError } from './config-error.ts'
import type { Environment } from './interpolation.ts'
import { reportIssues } from './issues.ts'
import { createOrganizations, type OrganizationConfig } from './organizations.ts'
import { createPlaces, type Places } from './places.ts'
import { isRawMap } from './raw-value.ts'
import { readTree } from './read-tree.ts'
import { type FileConfig, FileSchema } from './schema.ts'
import { listSetKeys } from './set-keys.ts'
import { readYamlFile } from './yaml-file.ts'

/** The configuration with all defaults filled in. Paths are absolute, durations are milliseconds. */
export interface Config extends Omit<FileConfig, 'collections' | 'organizations'> {
  file: string
  database: string
  publish: string | null
  /** Those that some organization syncs, or would if it said nothing about them. */
  collections: CollectionConfig[]
  /** In the order of the file. */
  organizations: OrganizationConfig[]
  /** Keys that the file itself sets, such as `rateLimit.sharePercent`. */
  setKeys: string[]
}

export interface LoadOptions {
  env: Environment
  /** `leave` for commands that send no requests: they need no token, and `readToken` throws. */
  tokens: 'resolve' | 'leave'
  isCron: CronCheck
}

/**
 * Reads the configuration file (interface, section 2). Throws one ConfigError with every problem of the file; a token
 * file is not read here but whenever `readToken` is called.
 */
export function loadConfig(file: string, options: LoadOptions): Config {
  const { document, lines } = readYamlFile(file)
  const places = createPlaces(lines)
  const tree = readTree({ document, places, env: options.env, leaveTokens: options.tokens === 'leave' })
  const { parsed, raw } = parseTree(tree, places)
  checkAcrossKeys(raw, places, resolve(file), options.isCron)

  if (!parsed || places.problems.length > 0) throw new ConfigError(file, places.problems)
  return createConfig({ parsed, tree, places, file: resolve(file), options })
}

/** Two looks: the first one tells where text from a variable has to become a number or a truth value. */
function parseTree(
  tree: unknown,
  { report, variablesOf }: Places,
): { parsed: FileConfig | undefined; raw: unknown } {
  // Without the section its one required key is what is missing, not the section.
  const whole = isRawMap(tree) ? { ...tree, api: tree.api ?? {} } : tree
  const first = FileSchema.safeParse(whole)
  if (first.success) return { parsed: first.data, raw: whole }
  const raw = coerceVariables(whole, first.error.issues, (path) => variablesOf(path).length > 0)
  const second = FileSchema.safeParse(raw)
  reportIssues(second.error?.issues ?? [], raw, report)
  return { parsed: second.data, raw }
}

function checkAcrossKeys(
  raw: unknown,
  { report, variablesOf }: Places,
  file: string,
  isCron: CronCheck,
): void {
  checkRetryDelays(raw, report)
  checkPaths(raw, report, file)
  checkSchedules(raw, report, isCron, (path) => variablesOf(path).length > 0)
  checkOrganizations(raw, report)
  checkCollections(raw, report)
}

interface Parts {
  parsed: FileConfig
  tree: unknown
  places: Places
  file: string
  options: LoadOptions
}

function createConfig({ parsed, tree, places, file, options: { tokens, env } }: Parts): Config {
  const defined = defineCollections(parsed.collections)
  const organizations = createOrganizations(parsed, defined, {
    file,
    tokens,
    env,
    tokenFileVariables: (index) => places.variablesOf(['organizations', index, 'tokenFile']),
  })
  const synced = new Set(organizations.flatMap(({ collections }) => collections.map(({ name }) => name)))
  return {
    ...parsed,
    file,
    database: resolve(dirname(file), parsed.database),
    publish: parsed.publish === null ? null : resolve(dirname(file), parsed.publish),
    collections: defined
      .filter(({ config, enabled }) => enabled || synced.has(config.name))
      .map(({ config }) => config),
    organizations,
    setKeys: listSetKeys(tree),
  }
}
