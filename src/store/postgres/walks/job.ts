import { sortedJson } from '../../../json/value.ts'
import type { Job } from '../../../sync/types.ts'

/** The condition for the rows of a job, with the parameters $1 and $2 of `ofJob`. */
export const OF_JOB = 'organization_id = $1 AND collection = $2'

export function ofJob({
  organization,
  collection,
}: Pick<Job, 'organization' | 'collection'>): [string, string] {
  return [organization.id, collection.name]
}

/** By the configured filters: those of a backfill only narrow the list. */
export function scopeOf({ collection }: Job): [path: string, filters: string] {
  return [collection.path, sortedJson(collection.scope ?? collection.filters)]
}

export function nameOf({ organization, collection }: Job): string {
  return `${organization.name} ${collection.name}`
}

export function timeOf(ms: number): string {
  return new Date(ms).toISOString()
}
