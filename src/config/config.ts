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
import { ConfigError, type KeyPath, nearest } from './problems.ts'
import { COLLECTION_DEFAULTS, type FileConfig, FileSchema, SECTIONS } from './schema.ts'
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
  const variables = new Map<string, string[]>()
  const broken: string[] = []
  const variablesAt = (path: KeyPath) => variables.get(JSON.stringify(path)) ?? []
  const isBroken = (path: KeyPath) =>
    broken.some(
      (one) => one === JSON.stringify(path) || JSON.stringify(path).startsWith(`${one.slice(0, -1)},`),
    )
  const report: ConfigFile['report'] = (path, message, part) => {
    const names = variablesAt(path)
    const origin = names.length > 0 ? ` The value comes from the environment (${names.join(', ')}).` : ''
    if (!isBroken(path)) source.report(path, message + origin, part)
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
    if (names.length > 0) variables.set(JSON.stringify(path), names)
    if (problem !== null) {
      source.report(path, problem)
      broken.push(JSON.stringify(path))
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
function isSecret([first, index, key, ...deeper]: KeyPath): boolean {
  if (first === 'ping') return index === undefined
  return (
    first === 'organizations' &&
    typeof index === 'number' &&
    deeper.length === 0 &&
    /^token(File)?$/.test(String(key))
  )
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
    for (const key of issue.keys) {
      const isOfAll = key === 'key' && path[0] === 'organizations' && path.length === 4
      const why = isOfAll
        ? 'is the same for every organization. Move it to collections at the top of the file.'
        : unknownKey(key, issue.message.split(' '))
      report([...path, key], why, 'key')
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

function unknownKey(key: string, known: readonly string[]): string {
  if (key.includes(':')) return 'is not a known key: its colon needs a space after it. Write "key: value".'
  const section = Object.entries(SECTIONS).find(([, keys]) => keys.includes(key))?.[0]
  const elsewhere = Object.hasOwn(FileSchema.shape, key)
    ? `${key} at the top of the file, without indentation`
    : section && `${section}.${key}`
  const meant = nearest(key, known) ?? elsewhere
  return `is not a known key. ${meant ? `Did you mean ${meant}?` : `Known here: ${known.join(', ')}.`}`
}

function postgresOf(database: string, file: string): PostgresSettings | null {
  if (!isPostgresAddress(database)) return null
  const parsed = parsePostgresAddress(database)
  if ('problem' in parsed) throw new Error(parsed.problem)
  const { authority } = parsed.value
  return { ...parsed.value, authority: authority === null ? null : resolve(dirname(file), authority) }
}
