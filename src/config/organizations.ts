import { dirname, resolve } from 'node:path'
import { type CollectionConfig, type DefinedCollection, mergeCollections } from './collections.ts'
import { type Environment, interpolate } from './interpolation.ts'
import type { FileConfig } from './schema.ts'
import { createTokenFileReader } from './token.ts'

/** One tenant of the API. */
export interface OrganizationConfig {
  /** UUID in lower case. */
  id: string
  name: string
  /** Cron expression. */
  schedule: string
  /** Those that this organization syncs, with its overrides. */
  collections: CollectionConfig[]
  /**
   * A closure, so that the token is no property that a log line could print. Reads a token file at each call;
   * throws a TokenFileError when that cannot be done, and an Error when the configuration was loaded without tokens.
   */
  readToken: () => string
  /** The absolute path of the token file; null where there is none, or its path is not known for want of a variable. */
  tokenFile: () => string | null
}

interface TokenOptions {
  /** Absolute path of the configuration file, where the paths of token files count from. */
  file: string
  tokens: 'resolve' | 'leave'
  env: Environment
  /** The environment variables that the path of organization `index`'s token file comes from. */
  tokenFileVariables: (index: number) => readonly string[]
}

export function createOrganizations(
  parsed: FileConfig,
  defined: readonly DefinedCollection[],
  options: TokenOptions,
): OrganizationConfig[] {
  return parsed.organizations.map((organization, index) => ({
    id: organization.id,
    name: organization.name,
    schedule: organization.schedule ?? parsed.schedule,
    collections: mergeCollections(defined, organization.collections),
    readToken: createReadToken(organization, options, options.tokenFileVariables(index)),
    tokenFile: () => tokenFilePath(organization, options),
  }))
}

function createReadToken(
  { name, token, tokenFile }: FileConfig['organizations'][number],
  options: TokenOptions,
  variables: readonly string[],
): () => string {
  if (options.tokens === 'leave') {
    return () => {
      throw new Error(`The configuration was loaded without the token of organization ${name}`)
    }
  }
  if (token !== undefined) return () => token
  const path = resolve(dirname(options.file), tokenFile ?? '')
  const shown =
    variables.length === 0 ? path : `named by ${variables.map((variable) => `\${${variable}}`).join(' and ')}`
  return createTokenFileReader({ organization: name, path, shown })
}

function tokenFilePath(
  { tokenFile }: FileConfig['organizations'][number],
  { file, tokens, env }: TokenOptions,
): string | null {
  if (tokenFile === undefined) return null
  // Where tokens are left alone the path still names its variables.
  const known = tokens === 'leave' ? interpolate(tokenFile, env) : { value: tokenFile }
  return 'value' in known ? resolve(dirname(file), known.value) : null
}

/** The organization that a command names: by its name, else by the name in any case, else by its UUID in any case. */
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
