import { createHash } from 'node:crypto'
import { dirname, resolve } from 'node:path'
import type { z } from 'zod'
import { checkAcrossKeys, isMapping } from './checks.ts'
import {
  type CollectionConfig,
  createOrganizations,
  defineCollections,
  type OrganizationConfig,
} from './organizations.ts'
import { isPostgresAddress, type PostgresSettings, parsePostgresAddress } from './postgres-address.ts'
import { ConfigError, formatKey, type KeyPath, nearest } from './problems.ts'
import { COLLECTION_DEFAULTS, type FileConfig, FileSchema } from './schema.ts'
import { type ConfigFile, type Environment, interpolate, readConfigFile } from './yaml.ts'

/** The configuration with all defaults. Paths are absolute, durations are milliseconds. */
export interface Config extends Omit<FileConfig, 'collections' | 'organizations' | 'ping'> {
  file: string
  /** Of what the file says, before variables are replaced: another one means that a process with this configuration needs a restart. */
  fingerprint: string
  /** Set in a running process that cannot read its file any more: it is gone, or wrong. */
  isLost?: true
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

/** Reads the configuration file. Throws one ConfigError with every problem of it. Token files are read later, by `readToken`. */
export function loadConfig(name: string, { env, tokens, nameEnds }: LoadOptions): Config {
  const file = resolve(name)
  const source = readConfigFile(file)
  /** By the key path as messages write it: the variables in a value, and what is wrong with one of them. */
  const variables = new Map<string, string[]>()
  const broken = new Set<string>()
  const variablesAt = (path: KeyPath) => variables.get(formatKey(path)) ?? []
  const report: ConfigFile['report'] = (path, message, part) => {
    const names = variablesAt(path)
    const origin = names.length > 0 ? ` The value comes from the environment (${names.join(', ')}).` : ''
    if (!broken.has(formatKey(path))) source.report(path, message + origin, part)
  }

  /** Replaces `${NAME}` in all values, never in keys. */
  function replaced(value: unknown, path: KeyPath): unknown {
    if (Array.isArray(value)) return value.map((one, index) => replaced(one, [...path, index]))
    if (isMapping(value))
      return Object.fromEntries(
        Object.entries(value).map(([key, one]) => [key, replaced(one, [...path, key])]),
      )
    if (typeof value !== 'string') return value
    const { text, names, problem } = interpolate(value, env, tokens === 'leave' && isSecret(path))
    if (names.length > 0) variables.set(formatKey(path), names)
    if (problem !== null) {
      source.report(path, problem)
      broken.add(formatKey(path))
    }
    return text
  }

  const values = replaced(source.values, [])
  // Without the section, its one required key is reported as missing, not the section.
  const whole = isMapping(values) ? { ...values, api: values.api ?? {} } : values
  const { data, error } = FileSchema.safeParse(whole, { jitless: true })
  for (const issue of (error?.issues ?? []).flatMap(flattenUnion)) reportIssue(issue, whole, report)
  checkAcrossKeys(whole, report, file, nameEnds)
  if (!data || source.problems.length > 0) throw new ConfigError(file, source.problems)

  const defined = defineCollections(data.collections, COLLECTION_DEFAULTS)
  const variablesIn = (index: number, key: 'token' | 'tokenFile') =>
    variablesAt(['organizations', index, key])
  const organizations = createOrganizations(data, defined, { file, tokens, variablesIn })
  const synced = new Set(organizations.flatMap(({ collections }) => collections.map((one) => one.name)))
  const postgres = postgresOf(data.database, file)
  const { ping, ...settings } = data
  return {
    ...settings,
    file,
    fingerprint: createHash('sha256').update(JSON.stringify(source.values)).digest('hex').slice(0, 16),
    database: postgres?.shown ?? resolve(dirname(file), data.database),
    postgres,
    publish: data.publish === null ? null : resolve(dirname(file), data.publish),
    ping: () => ping,
    literalTokens: data.organizations.flatMap(({ name: own, token }, index) =>
      token !== undefined && variablesIn(index, 'token').length === 0 ? [own] : [],
    ),
    collections: defined.flatMap(({ config, enabled }) =>
      enabled || synced.has(config.name) ? [config] : [],
    ),
    organizations,
  }
}

/** Whether a value is or names a token or the address of pings: commands that need neither leave its variables as they are. */
function isSecret(path: KeyPath): boolean {
  return /^(?:ping|organizations\[\d+\]\.token(?:File)?)$/.test(formatKey(path))
}

type Issue = z.core.$ZodIssue

/**
 * For a union: the problems of the branch that the value resembles, a mapping or list with wrong contents. If it resembles none,
 * the union's own message is the better one.
 */
function flattenUnion(issue: Issue): Issue[] {
  if (issue.code !== 'invalid_union') return [issue]
  const isOtherForm = ({ code, path }: Issue) =>
    path.length === 0 && ['invalid_type', 'invalid_value', 'invalid_format'].includes(code)
  const chosen = issue.errors.find((branch) => branch.length > 0 && !branch.some(isOtherForm))
  return chosen
    ? chosen.flatMap((inner) => flattenUnion({ ...inner, path: [...issue.path, ...inner.path] }))
    : [issue]
}

function reportIssue(issue: Issue, values: unknown, report: ConfigFile['report']): void {
  const path = issue.path.map((part) => (typeof part === 'number' ? part : String(part)))
  if (issue.code === 'unrecognized_keys') {
    // The schema says which keys it knows.
    const known = issue.message.split(' ')
    for (const key of issue.keys) {
      const meant = nearest(key, known)
      const hint = meant === null ? `Known here: ${known.join(', ')}.` : `Did you mean ${meant}?`
      report([...path, key], `is not a known key. ${hint}`, 'key')
    }
    return
  }
  const value = path.reduce<unknown>(
    (inside, part) => (inside as Record<string, unknown> | null)?.[part],
    values,
  )
  const state = value === undefined ? 'is missing. It ' : value === null ? 'has no value. It ' : ''
  report(path, state + issue.message)
}

function postgresOf(database: string, file: string): PostgresSettings | null {
  if (!isPostgresAddress(database)) return null
  const parsed = parsePostgresAddress(database)
  if ('problem' in parsed) throw new Error(parsed.problem)
  const { authority } = parsed.value
  return { ...parsed.value, authority: authority === null ? null : resolve(dirname(file), authority) }
}
