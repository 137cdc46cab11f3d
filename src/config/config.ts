import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { z } from 'zod'
import { isPostgresAddress, parsePostgresAddress, type PostgresSettings } from './postgres-address.ts'
import {
  checkAcrossKeys,
  Collection,
  collectionNames,
  type FileConfig,
  FileSchema,
  Refresh,
  wordsForWrongType,
} from './schema.ts'
import { readTokenFile } from './token-file.ts'
import {
  ConfigError,
  type ConfigYaml,
  formatKey,
  isMapping,
  type KeyPath,
  type Mapping,
  mappingOf,
  parseYaml,
} from './yaml.ts'

/** The environment as the commands get it. */
export type Environment = Readonly<Record<string, string | undefined>>

/** One list endpoint, with all defaults filled in; durations are milliseconds. */
export type CollectionConfig = Omit<z.output<typeof Collection>, 'path'> & { name: string; path: string }

/** One tenant of the API. */
export interface OrganizationConfig {
  /** UUID in lower case. */
  id: string
  name: string
  /** Cron expression. */
  schedule: string
  /** How its lists are kept fresh between full walks; false: they are only walked whole. */
  refresh: z.output<typeof Refresh> | false
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

/** The configuration with all defaults. Paths are absolute, durations are milliseconds. */
export interface Config extends Omit<FileConfig, 'collections' | 'organizations' | 'ping' | 'refresh'> {
  file: string
  /** Of what the file says, before variables are replaced: another one means that a process with this configuration needs a restart. */
  fingerprint: string
  /** Set in a running process that cannot read its file any more: it is gone, or wrong. */
  isLost?: true
  /** The mirror's file; or the address of its PostgreSQL schema, without the password. */
  database: string
  /** Null if the mirror is a file. */
  postgres: PostgresSettings | null
  /** Where runs are told of. A function, so that the address is not a property that a log line could print. */
  ping: () => string | null
  /** Those that are on by default, or that some organization syncs. */
  collections: CollectionConfig[]
  /** In the order of the file. */
  organizations: OrganizationConfig[]
}

export interface LoadOptions {
  env: Environment
  /** `leave` for commands that send no requests: they need no token, and `readToken` throws. */
  tokens: 'resolve' | 'leave'
}

/** Reads the configuration file. Throws one ConfigError with every problem of it. Token files are read later, by `readToken`. */
export function loadConfig(name: string, options: LoadOptions): Config {
  const file = resolve(name)
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new ConfigError(
      `${file}  the configuration cannot be read (${(error as Error).message.split(', ')[0]}). To make one, copy config/admin-mirror.example.yaml ` +
        'there and fill in your own values; or name another one with --config or ADMIN_MIRROR_CONFIG',
    )
  }
  return parseConfig(text, file, options)
}

/** The configuration that a file with this text is. `file`: its absolute path. Throws as `loadConfig` does. */
export function parseConfig(text: string, file: string, { env, tokens }: LoadOptions): Config {
  const yaml = parseYaml(file, text)
  // Without the section, its one required key is missing, not the section.
  const values = { api: {}, ...mappingOf(read(yaml.values, [])) }

  /** The values with their variables, without the keys that have no value. */
  function read(value: unknown, path: KeyPath): unknown {
    if (Array.isArray(value)) return value.map((one, index) => read(one, [...path, index]))
    if (isMapping(value)) {
      // A collection may be there without settings, and a filter without a value is wrong.
      const isKept = /^(?:organizations\[\d+\]\.)?collections(?:\.\w+\.filters)?$/.test(formatKey(path))
      const entries = Object.entries(value).filter(([, one]) => one !== null || isKept)
      return Object.fromEntries(entries.map(([key, one]) => [key, read(one, [...path, key])]))
    }
    if (typeof value !== 'string' || (tokens === 'leave' && isSecret(path))) return value
    const replaced = interpolate(value, env)
    if (replaced.problem !== null) yaml.report(path, replaced.problem)
    return replaced.text
  }

  const { data, error } = FileSchema.safeParse(values, { jitless: true, error: wordsForWrongType })
  for (const issue of (error?.issues ?? []).flatMap(flattened)) reportIssue(issue, values, yaml)
  checkAcrossKeys(values, file, yaml.report)
  yaml.end()
  if (!data) throw error
  return assemble(data, values, { file, tokens, typed: mappingOf(yaml.values) })
}

/** Whether a value is or names a token or the address of pings: commands that need neither leave its variables as they are. */
function isSecret(path: KeyPath): boolean {
  return /^(?:ping|organizations\[\d+\]\.token(?:File)?)$/.test(formatKey(path))
}

/**
 * Replaces `${NAME}` by the environment variable, and `$$` by a dollar; a dollar before anything else stays. A variable's value is
 * used unchanged, dollars included, and never quoted in a problem.
 */
export function interpolate(text: string, env: Environment): { text: string; problem: string | null } {
  let problem: string | null = null
  const replaced = text.replaceAll(/\$\$|\$\{(?:([A-Za-z_]\w*)\})?/g, (found, name: string | undefined) => {
    if (found === '$$') return '$'
    const value = name !== undefined && Object.hasOwn(env, name) && env[name]
    if (value) return value
    problem ??=
      name === undefined
        ? `has a \${ that no variable follows: write \${NAME}, or $\${ for a dollar and a brace`
        : `the environment variable ${name} is not set, or empty`
    return ''
  })
  return { text: replaced, problem }
}

type Issue = z.core.$ZodIssue

/** For a union: what is wrong inside of the mapping or list that it may be; if the value is neither, the union's own words. */
function flattened(issue: Issue): Issue[] {
  if (issue.code !== 'invalid_union') return [issue]
  const inside = issue.errors
    .flat()
    .filter(({ path, code }) => path.length > 0 || code === 'unrecognized_keys')
    .flatMap((one) => flattened({ ...one, path: [...issue.path, ...one.path] }))
  return inside.length > 0 ? inside : [issue]
}

function reportIssue(issue: Issue, values: Mapping, { report }: ConfigYaml): void {
  const path = issue.path.map((part) => (typeof part === 'number' ? part : String(part)))
  const value = path.reduce<unknown>((inside, part) => (inside as Mapping | undefined)?.[part], values)
  if (issue.code === 'unrecognized_keys')
    // The schema says which keys it knows.
    for (const key of issue.keys) report([...path, key], `is not a known key; there are: ${issue.message}`)
  else if (issue.code === 'invalid_key') report(path, issue.issues[0]?.message ?? issue.message)
  else report(path, value === undefined ? 'is missing' : issue.message)
}

/**
 * Lays the settings of the organizations over those for all. `values`: the parts of `data` as they were typed, so without defaults; `typed`: before
 * variables were replaced.
 */
function assemble(
  data: FileConfig,
  values: Mapping,
  { file, tokens, typed }: Pick<LoadOptions, 'tokens'> & { file: string; typed: Mapping },
): Config {
  const folder = dirname(file)
  const defined = mappingOf(values.collections)
  const organizations = data.organizations.map((own, index): OrganizationConfig => {
    const [given, source] = [values, typed].map(({ organizations: all }) => (all as Mapping[])[index] ?? {})
    const path = own.tokenFile === undefined ? null : resolve(folder, own.tokenFile)
    const tokenPlace = placeOfToken(own.name, path, mappingOf(source))
    return {
      id: own.id,
      name: own.name,
      schedule: own.schedule ?? data.schedule,
      refresh:
        (own.refresh ?? data.refresh) !== false &&
        Refresh.parse({ ...mappingOf(values.refresh), ...mappingOf(given?.refresh) }),
      collections: collectionsOf(defined, mappingOf(given?.collections)),
      tokenPlace,
      readToken() {
        if (tokens === 'leave')
          throw new Error(`the configuration was loaded without the token of ${own.name}`)
        return own.token ?? readTokenFile(path ?? '', `token file ${tokenPlace} of organization ${own.name}`)
      },
    }
  })
  const { ping, refresh: _, database, publish, ...settings } = data
  const address = isPostgresAddress(database) ? parsePostgresAddress(database) : null
  const postgres = address && 'value' in address ? address.value : null
  const synced = organizations.flatMap(({ collections }) => collections.map(({ name }) => [name, null]))
  return {
    ...settings,
    file,
    fingerprint: createHash('sha256').update(JSON.stringify(typed)).digest('hex').slice(0, 16),
    database: postgres?.shown ?? resolve(folder, database),
    postgres: postgres && {
      ...postgres,
      authority: postgres.authority && resolve(folder, postgres.authority),
    },
    publish: publish && resolve(folder, publish),
    ping: () => ping,
    collections: collectionsOf(defined, Object.fromEntries(synced)),
    organizations,
  }
}

/** Those that are on, with `own` settings before those for all. Filters are not merged, so that an organization can drop one. */
function collectionsOf(defined: Mapping, own: Mapping): CollectionConfig[] {
  return collectionNames(defined)
    .filter((name) => (Object.hasOwn(own, name) ? own[name] : defined[name]) !== 'false')
    .map((name) => {
      const settings = Collection.parse({ ...mappingOf(defined[name]), ...mappingOf(own[name]) })
      return { ...settings, name, path: settings.path ?? `/api/v1/admin/${name}` }
    })
}

/** What comes from a variable is not shown: a path may hold a secret by mistake, too. */
function placeOfToken(name: string, path: string | null, { token, tokenFile }: Mapping): string {
  const variables = String(tokenFile ?? token)
    .match(/\$\{\w+\}/g)
    ?.join(' and ')
  if (path === null) return variables ?? `token of ${name} in the configuration`
  return variables === undefined ? path : `named by ${variables}`
}
