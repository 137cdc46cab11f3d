import type { Config } from '../config/config.ts'
import type { CollectionConfig } from '../config/organizations.ts'
import { findOrganization, type OrganizationConfig } from '../config/organizations.ts'
import { UsageError } from '../errors.ts'
import type { Job } from '../sync/types.ts'

/** The values of all `--org` and `--collection` options. */
export interface JobSelection {
  org: string[]
  collection: string[]
}

export interface SelectedJob {
  organization: OrganizationConfig
  job: Job
}

/** The organizations that `--org` names; all without it. Throws UsageError for one that is not configured. */
export function selectOrganizations(config: Config, names: readonly string[]): OrganizationConfig[] {
  if (names.length === 0) return config.organizations
  const found = names.map((name) => {
    const organization = findOrganization(config, name)
    if (organization) return organization
    const known = config.organizations.map((one) => one.name).join(', ')
    throw new UsageError(
      `--org ${name}: no organization of the configuration has this name or UUID (it has: ${known})`,
    )
  })
  return [...new Set(found)]
}

/** The selected jobs, in the order of the configuration. Throws UsageError for an unknown name, and when no job is left. */
export function selectJobs(config: Config, selection: JobSelection): SelectedJob[] {
  const known = config.collections.map((collection) => collection.name)
  for (const name of selection.collection) {
    if (!known.includes(name)) {
      throw new UsageError(
        `--collection ${name}: the configuration has no such collection (it has: ${known.join(', ')})`,
      )
    }
  }
  const isSelected = ({ name }: CollectionConfig) =>
    selection.collection.length === 0 || selection.collection.includes(name)
  const jobs = selectOrganizations(config, selection.org).flatMap((organization) => {
    const { id, name, collections } = organization
    return collections
      .filter(isSelected)
      .map((collection) => ({ organization, job: { organization: { id, name }, collection } }))
  })
  if (jobs.length === 0)
    throw new UsageError('nothing to do: none of these organizations syncs that collection')
  return jobs
}

/**
 * Names the budget that an organization's requests spend.
 * @param token The fingerprint of its token; without one, it has a budget of its own.
 */
export function budgetKey(
  { rateLimit }: Pick<Config, 'rateLimit'>,
  organization: string,
  token: string | null,
): string {
  return { all: 'all', organization, token: token ?? organization }[rateLimit.scope]
}
