import { dirname, resolve } from 'node:path'
import { checkAcrossKeys } from './checks.ts'
import { type CollectionConfig, defineCollections } from './collections.ts'
import { reportIssues } from './issues.ts'
import { createOrganizations, type OrganizationConfig } from './organizations.ts'
import { isPostgresAddress, type PostgresSettings, parsePostgresAddress } from './postgres-address.ts'
import { ConfigError, createProblems, isMapping, type Problems } from './problems.ts'
import { type FileConfig, FileSchema } from './schema.ts'
import { type Environment, readValues } from './variables.ts'
import { readYamlFile } from './yaml.ts'

/** The configuration with all defaults. Paths are absolute, durations are milliseconds. */
export interface Config extends Omit<FileConfig, 'collections' | 'organizations' | 'ping'> {
  file: string
  /** The mirror's file; or the address of its PostgreSQL schema, without the password. */
  database: string
  /** Null if the mirror is a file. */
  postgres: PostgresSettings | null
  publish: string | null
  /** Where runs are told of. A function, so that the address is not a property that a log line could print. */
  ping: () => string | null
  /** The organizations whose token is written in the file itself. */
  literalTokens: string[]
  /** Those that are on by default, or that some organization syncs. */
  collections: CollectionConfig[]
  /** In the order of the file. */
  organizations: OrganizationConfig[]
}

export interface LoadOptions {
  env: Environment
  /** What the mirror appends to a collection's name for its other tables, such as `_raw`. */
  nameEnds: readonly string[]
  /** `leave` for commands that send no requests: they need no token, and `readToken` throws. */
  tokens: 'resolve' | 'leave'
}

/**
 * Reads the configuration file, whose keys are in config/REFERENCE.md. Throws one ConfigError with every problem of the file.
 * Token files are read later, by `readToken`.
 */
export function loadConfig(file: string, options: LoadOptions): Config {
  const { document, lines } = readYamlFile(file)
  const problems = createProblems(document, lines)
  const { env, tokens, nameEnds } = options
  const values = readValues({ document, problems, env, leaveTokens: tokens === 'leave' })
  // Without the section, report its one required key as missing, not the section.
  const raw = isMapping(values) ? { ...values, api: values.api ?? {} } : values
  const { data, error } = FileSchema.safeParse(raw)
  reportIssues(error?.issues ?? [], raw, problems)
  checkAcrossKeys(raw, problems.report, resolve(file), nameEnds)

  if (!data || problems.found.length > 0) throw new ConfigError(file, problems.found)
  return createConfig(data, problems, resolve(file), options)
}

function createConfig(
  parsed: FileConfig,
  { variablesOf }: Problems,
  file: string,
  { tokens, env }: LoadOptions,
): Config {
  const defined = defineCollections(parsed.collections)
  const organizations = createOrganizations(parsed, defined, {
    file,
    tokens,
    env,
    variablesIn: (index, key) => variablesOf(['organizations', index, key]),
  })
  const postgres = postgresOf(parsed.database, file)
  const synced = new Set(organizations.flatMap(({ collections }) => collections.map(({ name }) => name)))
  const { ping, ...settings } = parsed
  return {
    ...settings,
    ping: () => ping,
    file,
    database: postgres?.shown ?? resolve(dirname(file), parsed.database),
    postgres,
    literalTokens: parsed.organizations.flatMap(({ name, token }, index) =>
      token !== undefined && variablesOf(['organizations', index, 'token']).length === 0 ? [name] : [],
    ),
    publish: parsed.publish === null ? null : resolve(dirname(file), parsed.publish),
    collections: defined
      .filter(({ config, enabled }) => enabled || synced.has(config.name))
      .map(({ config }) => config),
    organizations,
  }
}

function postgresOf(database: string, file: string): PostgresSettings | null {
  if (!isPostgresAddress(database)) return null
  const parsed = parsePostgresAddress(database)
  if ('problem' in parsed) throw new Error(parsed.problem)
  const { authority } = parsed.value
  return { ...parsed.value, authority: authority === null ? null : resolve(dirname(file), authority) }
}
