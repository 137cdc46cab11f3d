import type { Config, OrganizationConfig } from '../config/config.ts'
import { UsageError } from '../errors.ts'
import type { Job } from '../sync/types.ts'

// Which organizations and lists `--org` and `--collection` name.

/** The values of all `--org` and `--collection` options. */
export interface JobSelection {
  org: string[]
  collection: string[]
}

/** A job whose organization is as configured: with its schedule, its refreshes and its token. */
export interface ConfiguredJob extends Job {
  organization: OrganizationConfig
}

export interface Named {
  id: string
  name: string
}

/** Those of the configuration or the mirror that have this UUID or name. Throws UsageError where there is none. */
export function organizationsNamed<T extends Named>(typed: string, known: readonly T[]): T[] {
  const found = known.filter(({ id, name }) => id === typed.toLowerCase() || name === typed)
  if (found.length > 0) return found
  const names = [...new Set(known.map(({ name }) => name))].join(', ')
  throw new UsageError(`--org ${typed}: there is no organization of this name or UUID (known: ${names})`)
}

/** The organizations that `--org` names; all without it. Throws UsageError for one that is not configured. */
export function selectOrganizations(config: Config, names: readonly string[]): OrganizationConfig[] {
  if (names.length === 0) return config.organizations
  return [...new Set(names.flatMap((name) => organizationsNamed(name, config.organizations)))]
}

/** The selected jobs, in the order of the configuration. Throws UsageError for an unknown name, and when no job is left. */
export function selectJobs(
  config: Config,
  { org, collection: typed }: JobSelection = { org: [], collection: [] },
): ConfiguredJob[] {
  const known = config.collections.map((collection) => collection.name)
  const stranger = typed.find((name) => !known.includes(name))
  if (stranger !== undefined)
    throw new UsageError(
      `--collection ${stranger}: the configuration has no such collection (it has: ${known.join(', ')})`,
    )
  const jobs = selectOrganizations(config, org).flatMap((organization) =>
    organization.collections
      .filter(({ name }) => typed.length === 0 || typed.includes(name))
      .map((collection) => ({ organization, collection })),
  )
  if (jobs.length === 0) throw new UsageError('nothing to do: no such list is configured')
  return jobs
}
